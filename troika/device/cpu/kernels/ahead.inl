// What a product of few rows fetches before it reads it: rows read side by side are no stream that
// hardware follows.

namespace troika::device::cpu {
namespace {

constexpr int64_t kPrefetchBytes = 8192;
constexpr int64_t kCacheLine = 64;

// Walks over rows of `row` bytes, `gap` bytes apart.
struct Ahead {
  const std::byte* at;
  int64_t left;  // of the row
  int64_t row;
  int64_t gap;

  KERNEL_INLINE void fetch(int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(at + i);
    at += bytes;
    left -= bytes;
    while (left <= 0) {
      at += gap;
      left += row;
    }
  }
};

// From kPrefetchBytes behind the beginning of output n on, of a product that reads `row` bytes of
// each. Outputs that lie together are one long row, and behind it comes what is read next. Where a
// cut of the inputs leaves between them what is not read, the walk leaves it out, too.
Ahead ahead_of(const MatMulArgs& args, int64_t row, int64_t n) {
  constexpr int64_t kEndless = INT64_MAX / 2;
  if (args.w_stride != row) {
    const int64_t rows = kPrefetchBytes / row;
    const int64_t in_row = kPrefetchBytes % row;
    return {args.w + (n + rows) * args.w_stride + in_row, row - in_row, row, args.w_stride - row};
  }
  const std::byte* const from = args.w + n * row + kPrefetchBytes;
  const int64_t left = (args.n - n) * row - kPrefetchBytes;  // below zero: behind the end
  if (args.next_w == nullptr) return {from, kEndless, kEndless, 0};
  if (left <= 0) return {args.next_w - left, kEndless, kEndless, 0};
  return {from, left, kEndless, args.next_w - (from + left)};
}

}  // namespace
}  // namespace troika::device::cpu
