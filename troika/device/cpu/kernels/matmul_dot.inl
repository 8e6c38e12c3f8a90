// y = x W^T for few rows: weights are dequantized in registers and used at once, for a few rows of
// x and a few outputs together. Defines the order of summation that matmul_packed.inl repeats:
//
//   K is cut into chunks of kChunk. Within a chunk lane l adds x[k] w[k] for k = l, l + kLanes, ...
//   in ascending order from zero, and sum() adds the lanes in its tree. The sums of the chunks are
//   added in ascending order to `add`, or to the first of them without `add`.

namespace troika::device::cpu {
namespace {

constexpr int64_t kChunk = 1024;
static_assert(kChunk == kScaleWeights);

KERNEL_INLINE int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

// Makes the compiler forget what it has loaded through p, so that x is read from L1 again rather
// than kept in registers that are not there.
KERNEL_INLINE const float* reread(const float* p) {
  asm volatile("" : "+r"(p));
  return p;
}

template <TensorType type, int rows, int outputs>
KERNEL_INLINE void dot_tail(const float* const (&x)[rows], const std::byte* const (&w)[outputs],
                            int64_t n, VF (&acc)[rows][outputs]) {
  for (int64_t k = 0; k < n; k += kLanes) {
    const int lanes = static_cast<int>(lesser(n - k, kLanes));
    for (int c = 0; c < outputs; ++c) {
      const VF wv = lanes == kLanes ? load_plain<type>(w[c] + k * element_bytes(type))
                                    : load_plain_first<type>(w[c] + k * element_bytes(type), lanes);
      for (int r = 0; r < rows; ++r) {
        const VF next = fma(load_first(x[r] + k, lanes), wv, acc[r][c]);
        acc[r][c] = select_first(next, acc[r][c], lanes);
      }
    }
  }
}

// What dot_chunk() will be asked for next: the scales of these rows are copied in its loop, where
// there are idle slots, so that they need not be waited for.
template <int outputs>
struct NextChunk {
  const std::byte* w[outputs];
  int64_t blocks;
};

template <TensorType type, int outputs>
KERNEL_INLINE void take_halves(const NextChunk<outputs>& chunk, int64_t from,
                               Halves (&halves)[outputs]) {
  for (int64_t b = from; b < chunk.blocks; ++b) {
    for (int c = 0; c < outputs; ++c) Weights<type>::take_half(chunk.w[c], b, halves[c]);
  }
}

// The sums of one chunk: n weights from w[c] on, whose scales are in `halves`.
template <TensorType type, int rows, int outputs>
KERNEL_INLINE void dot_chunk(const float* const (&x_begin)[rows],
                             const std::byte* const (&w_begin)[outputs], int64_t n,
                             const Halves (&halves)[outputs], const NextChunk<outputs>& next,
                             Halves (&next_halves)[outputs], Ahead& ahead,
                             float (&sums)[rows][outputs]) {
  using W = Weights<type>;
  constexpr bool kXFitsRegisters = rows * kPartVecs + rows * outputs + 6 <= kRegisters;
  // Outputs whose sums are interleaved, so that no multiply-add waits long for the one before it.
  constexpr int kTogether = outputs % 2 == 0 && rows <= kRegisters / 8 ? 2 : 1;
  const float* x[rows];
  const std::byte* w[outputs];
  VF acc[rows][outputs];
  for (int r = 0; r < rows; ++r) x[r] = x_begin[r];
  for (int c = 0; c < outputs; ++c) w[c] = w_begin[c];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < outputs; ++c) acc[r][c] = zero();
  }
  const int64_t blocks = n / W::kBlock;
  Scales scales[outputs];
  for (int c = 0; c < outputs; ++c) W::take_scales(halves[c], blocks, scales[c]);
  for (int64_t b = 0; b < blocks; ++b) {
    ahead.fetch(outputs * W::kBytes);
    if (b < next.blocks) {
      for (int c = 0; c < outputs; ++c) W::take_half(next.w[c], b, next_halves[c]);
    }
    for (int u = 0; u < W::kBlock / W::kUnit; ++u) {
      typename W::Unit unit[outputs];
      for (int c = 0; c < outputs; ++c) W::open(w[c], u, scales[c], b, unit[c]);
      for_each_of<W::kUnit / kPart>([&](auto part) KERNEL_LAMBDA {
        for (int c0 = 0; c0 < outputs; c0 += kTogether) {
          W weights[kTogether];
          for (int c = 0; c < kTogether; ++c) weights[c].template read<part>(unit[c0 + c]);
          if constexpr (!kXFitsRegisters) {
            for (int r = 0; r < rows; ++r) x[r] = reread(x[r]);
          }
          for (int i = 0; i < kPartVecs; ++i) {
            VF wv[kTogether];
            for (int c = 0; c < kTogether; ++c) wv[c] = weights[c].vec(i);
            for (int r = 0; r < rows; ++r) {
              const VF xv = load(x[r] + i * kLanes);
              for (int c = 0; c < kTogether; ++c) acc[r][c0 + c] = fma(xv, wv[c], acc[r][c0 + c]);
            }
          }
        }
        for (int r = 0; r < rows; ++r) x[r] += kPart;
      });
    }
    for (int c = 0; c < outputs; ++c) w[c] += W::kBytes;
  }
  take_halves<type, outputs>(next, blocks, next_halves);
  if constexpr (W::kPlain) dot_tail<type, rows, outputs>(x, w, n % W::kBlock, acc);
  for (int r = 0; r < rows; ++r) {
    if constexpr (outputs == 4) {
      sum4(acc[r], sums[r]);
    } else {
      for (int c = 0; c < outputs; ++c) sums[r][c] = sum(acc[r][c]);
    }
  }
}

// The chunk of outputs n.. that begins at k0.
template <TensorType type, int outputs>
KERNEL_INLINE NextChunk<outputs> chunk_at(const MatMulArgs& args, int64_t n, int64_t k0) {
  NextChunk<outputs> chunk;
  for (int c = 0; c < outputs; ++c) {
    chunk.w[c] =
        args.w + (n + c) * args.w_stride + k0 / Weights<type>::kBlock * Weights<type>::kBytes;
  }
  chunk.blocks = lesser(args.k - k0, kChunk) / Weights<type>::kBlock;
  return chunk;
}

// Rows m0 .. m0 + n_rows - 1 (n_rows <= rows: the last one is computed again for the missing ones
// and dropped) of outputs n0 .. n0 + outputs - 1. `halves[0]` holds the scales of the first chunk;
// on return those of the first chunk of outputs next_n ...
template <TensorType type, int rows, int outputs>
void dot_tile(const MatMulArgs& args, int64_t m0, int64_t n_rows, int64_t n0, int64_t next_n,
              Halves (&halves)[2][outputs], int& current, Ahead& ahead) {
  const float* x[rows];
  float total[rows][outputs] = {};
  for (int64_t k0 = 0; k0 < args.k; k0 += kChunk) {
    for (int r = 0; r < rows; ++r) {
      x[r] = args.x + (m0 + lesser(r, n_rows - 1)) * args.x_stride + k0;
    }
    const NextChunk<outputs> chunk = chunk_at<type, outputs>(args, n0, k0);
    const bool more = k0 + kChunk < args.k;
    const NextChunk<outputs> next =
        chunk_at<type, outputs>(args, more ? n0 : next_n, more ? k0 + kChunk : 0);
    float sums[rows][outputs];
    dot_chunk<type, rows, outputs>(x, chunk.w, lesser(args.k - k0, kChunk), halves[current], next,
                                   halves[1 - current], ahead, sums);
    current = 1 - current;
    for (int r = 0; r < rows; ++r) {
      if (k0 == 0 && args.add != nullptr) {
        const float* add = args.add + (m0 + lesser(r, n_rows - 1)) * args.add_stride + n0;
        for (int c = 0; c < outputs; ++c) total[r][c] = add[c] + sums[r][c];
      } else {
        for (int c = 0; c < outputs; ++c) {
          total[r][c] = k0 > 0 ? total[r][c] + sums[r][c] : sums[r][c];
        }
      }
    }
  }
  for (int r = 0; r < n_rows && r < rows; ++r) {
    for (int c = 0; c < outputs; ++c) args.y[(m0 + r) * args.y_stride + n0 + c] = total[r][c];
  }
}

// All whole tiles from n on; returns the first output that is left.
template <TensorType type, int rows, int outputs>
int64_t dot_tiles(const MatMulArgs& args, int64_t m0, int64_t n_rows, int64_t n, int64_t n1) {
  if (n + outputs > n1) return n;
  Halves halves[2][outputs];
  int current = 0;
  take_halves<type, outputs>(chunk_at<type, outputs>(args, n, 0), 0, halves[0]);
  using W = Weights<type>;
  const int64_t row = (args.k + W::kBlock - 1) / W::kBlock * W::kBytes;
  Ahead ahead = ahead_of(args, row, n);
  for (; n + outputs <= n1; n += outputs) {
    const int64_t next = n + 2 * outputs <= n1 ? n + outputs : n;
    dot_tile<type, rows, outputs>(args, m0, n_rows, n, next, halves, current, ahead);
  }
  return n;
}

template <TensorType type, int rows>
void dot_outputs(const MatMulArgs& args, int64_t m0, int64_t n_rows, int64_t n0, int64_t n1) {
  const int64_t rest = dot_tiles<type, rows, kDotOutputs[rows]>(args, m0, n_rows, n0, n1);
  dot_tiles<type, rows, 1>(args, m0, n_rows, rest, n1);
}

// At most 8 rows.
template <TensorType type>
void dot_rows(const MatMulArgs& args, int64_t m0, int64_t n_rows, int64_t n0, int64_t n1) {
  switch (n_rows) {
    case 1:
      return dot_outputs<type, 1>(args, m0, n_rows, n0, n1);
    case 2:
      return dot_outputs<type, 2>(args, m0, n_rows, n0, n1);
    case 3:
      return dot_outputs<type, 3>(args, m0, n_rows, n0, n1);
    case 4:
      return dot_outputs<type, 4>(args, m0, n_rows, n0, n1);
    case 5:
    case 6:
      return dot_outputs<type, 6>(args, m0, n_rows, n0, n1);
    default:
      return dot_outputs<type, 8>(args, m0, n_rows, n0, n1);
  }
}

template <TensorType type>
void matmul_dot(const MatMulArgs& args) {
  const int64_t parts = (args.m + 7) / 8;
  const int64_t rows = (args.m + parts - 1) / parts;
  // Few outputs at a time, so that the next part finds their weights in the cache.
  constexpr int64_t kGroup = 24;
  const int64_t step = parts == 1 ? args.n : kGroup;
  for (int64_t n = 0; n < args.n; n += step) {
    for (int64_t m = 0; m < args.m; m += rows) {
      dot_rows<type>(args, m, lesser(rows, args.m - m), n, lesser(n + step, args.n));
    }
  }
}

}  // namespace
}  // namespace troika::device::cpu
