// Spoils what a task has written.
#pragma once

#include "troika/device/device.h"

namespace troika::device::faulty {

// Results off by a quarter, differently from column to column: finite, and none of it right.
void distort(const Program& program, const Bindings& bindings);

// Puts `value` into one place of every output. False if there is none that holds numbers.
bool plant(float value, const Program& program, const Bindings& bindings);

}  // namespace troika::device::faulty
