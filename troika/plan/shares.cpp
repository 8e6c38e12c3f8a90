#include "troika/plan/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troika::plan {
namespace {

// What starting one more piece costs, in rows: about the fixed cost of a task on an NPU.
constexpr int64_t kPieceCost = 16;

std::vector<double> cumulative(std::span<const double> shares) {
  std::vector<double> sums(shares.size());
  std::partial_sum(shares.begin(), shares.end(), sums.begin());
  const double all = sums.back();
  for (double& sum : sums) sum /= all;
  return sums;
}

int64_t nearest_multiple(double value, int64_t grain) {
  return static_cast<int64_t>(std::llround(value / static_cast<double>(grain))) * grain;
}

int64_t largest_within(int64_t rows, std::span<const int64_t> standard) {
  int64_t best = 0;
  for (const int64_t length : standard) {
    if (length <= rows) best = std::max(best, length);
  }
  return best;
}

// The sum of at most two standard lengths that is nearest to `target`, within `most`; of single
// rows only where no length is longer, since a task of one costs nearly as much as one of many.
int64_t nearest_sum(double target, int64_t most, std::span<const int64_t> standard) {
  int64_t best = 0;
  const auto consider = [&](int64_t sum) {
    const auto distance = [&](int64_t rows) {
      return std::abs(static_cast<double>(rows) - target);
    };
    if (sum <= most && distance(sum) < distance(best)) best = sum;
  };
  const bool has_longer =
      std::any_of(standard.begin(), standard.end(), [](int64_t length) { return length > 1; });
  for (const int64_t a : standard) {
    if (has_longer && a == 1) continue;
    consider(a);
    for (const int64_t b : standard) {
      if (!has_longer || b > 1) consider(a + b);
    }
  }
  return best;
}

}  // namespace

std::vector<Range> split(int64_t total, int64_t grain, std::span<const double> shares) {
  std::vector<Range> ranges;
  int64_t begin = 0;
  const std::vector<double> borders = cumulative(shares);
  for (size_t i = 0; i < borders.size(); ++i) {
    int64_t end = total;
    if (i + 1 < borders.size()) {
      end = nearest_multiple(borders[i] * static_cast<double>(total), grain);
      end = std::clamp(end, begin, total);
    }
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

HeadSplit split_heads(int64_t n_heads, int64_t n_kv_heads, int64_t grain, double attention,
                      std::span<const double> shares) {
  HeadSplit heads;
  heads.kv = split(n_kv_heads, 1, shares);
  const std::vector<double> borders = cumulative(shares);
  // A query head is computed and projected, which costs as much as key and value of a KV head.
  const double query = 1 + attention;
  const double all = query * static_cast<double>(n_heads) + static_cast<double>(n_kv_heads);
  int64_t begin = 0;
  for (size_t i = 0; i < borders.size(); ++i) {
    int64_t end = n_heads;
    if (i + 1 < borders.size()) {
      // What the border leaves for query heads, once k and v have their part.
      const double left = borders[i] * all - static_cast<double>(heads.kv[i].end);
      end = nearest_multiple(left / query, grain);
      end = std::clamp(end, begin, n_heads);
    }
    heads.query.push_back({begin, end});
    begin = end;
  }
  return heads;
}

int64_t padded_rows(int64_t rows, std::span<const int64_t> standard) {
  if (standard.empty()) return rows;
  int64_t best = 0;
  for (const int64_t length : standard) {
    if (length >= rows && (best == 0 || length < best)) best = length;
  }
  return best;
}

std::vector<int64_t> standard_pieces(int64_t rows, std::span<const int64_t> standard,
                                     bool pad_whole) {
  std::vector<int64_t> pieces;
  if (standard.empty()) return {rows};
  while (rows > 0) {
    const int64_t up = padded_rows(rows, standard);
    const int64_t down = largest_within(rows, standard);
    bool whole = up > 0 && (pad_whole || up == rows || down == 0);
    if (up > 0 && !whole) {
      // Against cutting off the largest length and padding what is left.
      const int64_t rest = padded_rows(rows - down, standard);
      whole = up <= down + rest + kPieceCost;
    }
    const int64_t piece = whole ? rows : down;
    if (piece <= 0) return {};  // no length holds a single row
    pieces.push_back(piece);
    rows -= piece;
  }
  return pieces;
}

std::vector<Range> split_rows(int64_t rows, std::span<const double> shares,
                              std::span<const std::span<const int64_t>> standard) {
  const bool all_static = std::none_of(standard.begin(), standard.end(),
                                       [](const auto& lengths) { return lengths.empty(); });
  if (all_static) return split(rows, 1, shares);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> counts(shares.size(), 0);
  int64_t left = rows;
  double free_shares = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (standard[i].empty()) {
      free_shares += shares[i];
      continue;
    }
    counts[i] = nearest_sum(shares[i] / sum * static_cast<double>(rows), left, standard[i]);
    left -= counts[i];
  }
  std::vector<Range> ranges;
  int64_t begin = 0;
  int64_t free_rows = left;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (standard[i].empty()) {
      const double part = free_shares > 0 ? shares[i] / free_shares : 1;
      counts[i] =
          std::clamp(nearest_multiple(part * static_cast<double>(free_rows), 1), int64_t{0}, left);
      const bool last_free = std::all_of(standard.begin() + static_cast<int64_t>(i) + 1,
                                         standard.end(), [](const auto& s) { return !s.empty(); });
      if (last_free) counts[i] = left;
      left -= counts[i];
    }
    ranges.push_back({begin, begin + counts[i]});
    begin += counts[i];
  }
  return ranges;
}

}  // namespace troika::plan
