// What a pass cost: added to the work of its devices, to what is known of its tasks' times, and to
// the trace.
#pragma once

#include "troika/runtime/pass.h"
#include "troika/runtime/schedule.h"

namespace troika::runtime {

// Of the pass that context.views and context.fences are of; every fence is reached.
void account(Schedule& schedule, PassContext& context);

}  // namespace troika::runtime
