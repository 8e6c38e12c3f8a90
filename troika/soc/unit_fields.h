// Reading one unit of a description, and the ranges of what more than units have.
#pragma once

#include "troika/soc/fields.h"
#include "troika/soc/soc.h"

namespace troika::soc {

// Wide enough for any chip, narrow enough that no cost overflows or divides by nothing.
inline constexpr FigureRange kBandwidth{"GB/s", 0.001, 1e5};
inline constexpr FigureRange kMicroseconds{"us", 0, 1e7};
inline constexpr FigureRange kWatts{"W", 0, 1e4};
inline constexpr FigureRange kSpeed{"times", 1, 100};
inline constexpr FigureRange kGigabytes{"GB", 0.001, 1e6};

// `at` is the path of the unit, for errors.
Result<Unit> unit_from(const nlohmann::json& value, const std::string& at);

}  // namespace troika::soc
