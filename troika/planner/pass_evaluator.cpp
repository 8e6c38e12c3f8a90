#include "troika/planner/pass_evaluator.h"

#include <cmath>

namespace troika::planner {

PassEvaluator::PassEvaluator(const PassSpace& space)
    : space_(space),
      chip_(space.cost().chip_facts()),
      scheduler_(space.graph(), space.cost(), space.infos(),
                 lowered_options(space.request(), space.infos())) {}

double PassEvaluator::score(const plan::RowsBucket& bucket) {
  ++evaluations_;
  const PassRequest& request = space_.request();
  if (!scheduler_.build(bucket, request.rows, schedule_)) return HUGE_VAL;
  if (request.turbo_mj) schedule_.schedule.turbo_mj = *request.turbo_mj;
  us_ = chip_.pass_overhead_us + simulator_.run(schedule_.schedule);
  mj_ = us_ * chip_.idle_w * 1e-3;
  for (const double mj : simulator_.energy_mj()) mj_ += mj;
  const Variation& variation = request.variation;
  if (variation.any()) {
    varied_.clear();
    for (int32_t i = 0; i < variation.seeds; ++i) {
      varied_.push_back(chip_.pass_overhead_us +
                        noisy_.run(schedule_.schedule, variation_noise(request, i)));
    }
    us_ = mean_and_p90(varied_).score_us();
  }
  return request.objective.score(us_, mj_);
}

}  // namespace troika::planner
