// Measures two devices at once: what each keeps of its speed, and what waiting for each other
// costs.
#pragma once

#include "troika/profile/measure/model_work.h"
#include "troika/profile/measure/stopwatch.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {

// Both stopwatches have the same host clock.
Result<PairProfile> measure_pair(const ModelWork& work, const Stopwatch& first,
                                 const Stopwatch& second);

}  // namespace troika::profile
