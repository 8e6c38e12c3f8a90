#include "troika/planner/balance.h"

#include <algorithm>

namespace troika::planner {
namespace {

using Time = std::function<double(size_t, int64_t)>;

// The most units that the part does within `us`, at most `most`.
int64_t capacity(const Time& time, size_t part, double us, int64_t most) {
  int64_t low = 0;
  int64_t high = most;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (time(part, middle) <= us) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

bool enough(const Time& time, size_t parts, int64_t units, double us) {
  const int64_t most = units - static_cast<int64_t>(parts) + 1;
  int64_t done = 0;
  for (size_t part = 0; part < parts; ++part) {
    const int64_t own = capacity(time, part, us, most);
    if (own == 0) return false;
    done += own;
  }
  return done >= units;
}

// The least time of this part, among those that it can have, within which all are done.
std::optional<double> least_of(const Time& time, size_t part, size_t parts, int64_t units) {
  const int64_t most = units - static_cast<int64_t>(parts) + 1;
  int64_t low = 1;
  int64_t high = most + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (enough(time, parts, units, time(part, middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low > most) return std::nullopt;
  return time(part, low);
}

}  // namespace

std::optional<Balance> balance(size_t parts, int64_t units, const Time& time) {
  if (parts == 0 || units < static_cast<int64_t>(parts)) return std::nullopt;
  // The slowest part's time is the answer, so that of some part is.
  std::optional<double> least;
  for (size_t part = 0; part < parts; ++part) {
    const auto own = least_of(time, part, parts, units);
    if (own && (!least || *own < *least)) least = own;
  }
  if (!least) return std::nullopt;
  Balance result;
  result.us = *least;
  int64_t excess = -units;
  for (size_t part = 0; part < parts; ++part) {
    result.units.push_back(capacity(time, part, *least, units - static_cast<int64_t>(parts) + 1));
    excess += result.units.back();
  }
  for (size_t part = parts; part-- > 0 && excess > 0;) {
    const int64_t given_back = std::min(excess, result.units[part] - 1);
    result.units[part] -= given_back;
    excess -= given_back;
  }
  return result;
}

}  // namespace troika::planner
