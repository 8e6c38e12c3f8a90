// Plans for a described chip, made into plans for the devices that drive its units.
#pragma once

#include "troika/plan/plan.h"
#include "troika/soc/soc.h"

namespace troika::planner {

// The plan with soc::device_of() each unit in place of the unit. Unchanged where two units have the
// same device; a unit without one keeps its name.
plan::Plan for_devices(plan::Plan plan, const soc::Soc& soc);

}  // namespace troika::planner
