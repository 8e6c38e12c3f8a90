// From shares to whole numbers: which outputs, heads and rows each part of a cut gets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troika::plan {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Cuts [0, total) in order of `shares` (none negative, one above 0) at multiples of `grain`; the
// last border is `total`. Ranges may be empty.
std::vector<Range> split(int64_t total, int64_t grain, std::span<const double> shares);

// The same for the heads of one attention: query heads at multiples of `grain`, and KV heads, so
// that each part's heads of q, k, v, attention and the output projection together come closest to
// its share. `attention` is what a query head costs in the attention, as a part of what it costs in
// q and in the output projection.
struct HeadSplit {
  std::vector<Range> query;
  std::vector<Range> kv;
};
HeadSplit split_heads(int64_t n_heads, int64_t n_kv_heads, int64_t grain, double attention,
                      std::span<const double> shares);

// `rows` in pieces that a device with these standard lengths computes with the least padding, each
// piece counted as kPieceCost more rows. Pieces are the rows used; the padded length of one is
// padded_rows(). One piece if `standard` is empty, or if `pad_whole` and a length is large enough.
std::vector<int64_t> standard_pieces(int64_t rows, std::span<const int64_t> standard,
                                     bool pad_whole);
// The smallest standard length that holds `rows`; `rows` itself if `standard` is empty, 0 if none
// does.
int64_t padded_rows(int64_t rows, std::span<const int64_t> standard);

// Cuts `rows` rows by shares; a part with standard lengths (`standard[i]` not empty) gets a sum of
// at most two of them, or nothing, whatever is nearest to its share, unless all parts are such.
// Lengths of one row do not count beside longer ones.
std::vector<Range> split_rows(int64_t rows, std::span<const double> shares,
                              std::span<const std::span<const int64_t>> standard);

}  // namespace troika::plan
