#include "troika/soc/bandwidth.h"

#include <algorithm>
#include <optional>

namespace troika::soc {
namespace {

uint32_t mask_of(const Soc& soc, const Together& together) {
  uint32_t mask = 0;
  for (const std::string& name : together.units) {
    if (const auto unit = soc.unit(name)) mask |= 1u << *unit;
  }
  return mask;
}

std::optional<double> listed(const Soc& soc, uint32_t mask) {
  for (const Together& together : soc.memory.together) {
    if (mask_of(soc, together) == mask) return together.bandwidth.value;
  }
  return std::nullopt;
}

}  // namespace

SharedBandwidth::SharedBandwidth(const Soc& soc) : totals_(size_t{1} << soc.units.size(), 0) {
  for (uint32_t mask = 1; mask < totals_.size(); ++mask) {
    double alone = 0;
    double least = 0;  // of every smaller set
    for (size_t i = 0; i < soc.units.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      alone += soc.units[i].bandwidth;
      least = std::max(least, totals_[mask & ~(1u << i)]);
    }
    totals_[mask] =
        std::max(least, listed(soc, mask).value_or(std::min(alone, soc.memory.reachable.value)));
  }
}

}  // namespace troika::soc
