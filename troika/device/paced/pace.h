// Whose timing a paced device has, as written in a device string:
// `paced:CHIP.UNIT[@STRETCH]:DEVICE`, e.g. `paced:snapdragon-8-gen-3.gpu@250:cpu@0`.
#pragma once

#include <string_view>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/soc/soc.h"

namespace troika::device::paced {

// Slow enough for most models that a core of a PC is done in time. All devices of a run are to have
// the same.
inline constexpr double kUsualStretch = 250;

struct Pace {
  soc::Unit unit;
  std::string chip;
  double stretch = kUsualStretch;  // every task takes so many times as long as on the chip
};

// kInvalidArgument, or kNotFound with the names that there are.
Result<Pace> parse_pace(std::string_view text);
// Of the chip's first unit with static graphs: what an NPU in software can be paced to.
Result<Pace> pace_of_static_unit(std::string_view chip);

// How long the unit takes for a program's operators, one after the other, without launches and
// joins. Static units compute all `max_rows` rows of the program. kUnsupported naming a product
// that the unit cannot have.
Result<double> program_us(const soc::Unit& unit, const Program& program, const BatchView& batch);

}  // namespace troika::device::paced
