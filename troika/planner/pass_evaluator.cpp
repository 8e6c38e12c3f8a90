#include "troika/planner/pass_evaluator.h"

#include <cmath>

namespace troika::planner {

PassEvaluator::PassEvaluator(const PassSpace& space)
    : space_(space),
      scheduler_(space.graph(), space.cost(), space.infos(),
                 lowered_options(space.request(), space.infos())) {}

double PassEvaluator::score(const plan::RowsBucket& bucket) {
  ++evaluations_;
  const PassRequest& request = space_.request();
  if (!scheduler_.build(bucket, request.rows, schedule_)) return HUGE_VAL;
  if (request.turbo_mj) schedule_.schedule.turbo_mj = *request.turbo_mj;
  const double us = simulator_.run(schedule_.schedule);
  const Variation& variation = request.variation;
  if (!variation.any()) return us;
  varied_.clear();
  for (int32_t i = 0; i < variation.seeds; ++i) {
    varied_.push_back(noisy_.run(schedule_.schedule, variation_noise(request, i)));
  }
  return mean_and_p90(varied_).score_us();
}

}  // namespace troika::planner
