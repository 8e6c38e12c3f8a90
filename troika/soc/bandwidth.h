// How units share the memory: what they get of what they ask for when several compute at once.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/soc/soc.h"

namespace troika::soc {

// Totals are known for sets of units; a set is a mask with bit i for unit i.
class SharedBandwidth {
 public:
  explicit SharedBandwidth(const Soc& soc);

  // GB/s that these units reach together: as listed for the set, else what they reach alone added
  // up, at most the chip's reachable rate. A set that contains a listed one reaches no less.
  double total(uint32_t mask) const { return totals_[mask]; }

 private:
  std::vector<double> totals_;  // by mask
};

}  // namespace troika::soc
