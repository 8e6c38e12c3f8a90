// Reading one unit of a description, and the ranges that whoever writes a description needs, too.
#pragma once

#include "troika/soc/fields.h"
#include "troika/soc/soc.h"

namespace troika::soc {

// Wide enough for any chip, narrow enough that no cost overflows or divides by nothing.
inline constexpr FigureRange kRate{"TFLOPS", 1e-6, 1e5};
inline constexpr FigureRange kTraffic{"times", 0.01, 1e3};
inline constexpr FigureRange kBandwidth{"GB/s", 0.001, 1e5};
inline constexpr FigureRange kMicroseconds{"us", 0, 1e7};
inline constexpr FigureRange kWatts{"W", 0, 1e4};
inline constexpr FigureRange kSpeed{"times", 1, 100};
inline constexpr FigureRange kGigabytes{"GB", 0.001, 1e6};

// Standard lengths, and points of a rate by tokens.
inline constexpr size_t kMaxLengths = 64;

// `at` is the path of the unit, for errors.
Result<Unit> unit_from(const nlohmann::json& value, const std::string& at);

}  // namespace troika::soc
