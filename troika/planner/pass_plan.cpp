// The best of what a strategy allows for one pass, and why.
#include <algorithm>
#include <cmath>
#include <set>

#include "troika/planner/model_plan.h"
#include "troika/planner/pass_candidates.h"
#include "troika/planner/schedule_search.h"

namespace troika::planner {
namespace {

Status check(const PassRequest& request) {
  const auto refuse = [](const char* what, auto value) {
    return make_error(ErrorCode::kInvalidArgument, "a pass with {} {} cannot be planned", what,
                      value);
  };
  if (request.rows < 1 || request.rows > kMaxPassRows) return refuse("rows", request.rows);
  if (request.depth < 0 || request.depth > kMaxPassRows) return refuse("depth", request.depth);
  if (request.logit_rows < 1) return refuse("rows of logits", request.logit_rows);
  if (!(request.weight_bits >= 0 && request.weight_bits <= 64)) {
    return refuse("bits of a weight", request.weight_bits);
  }
  if (!(request.head_bits >= 0 && request.head_bits <= 64)) {
    return refuse("bits of a weight of the head", request.head_bits);
  }
  for (const double deviation :
       {request.variation.deviation, request.variation.device_deviation}) {
    if (!(deviation >= 0 && deviation <= 1)) return refuse("deviation", deviation);
  }
  return {};
}

struct Judged {
  Candidate candidate;
  Forecast forecast;
};

// Evaluates candidates one by one and keeps them all.
class Contest {
 public:
  Contest(const graph::Graph& graph, const cost::CostModel& cost, const PassRequest& request)
      : graph_(graph), cost_(cost), request_(request) {}

  // The forecast's score, HUGE_VAL if it cannot be; `why` tells.
  void enter(Candidate candidate) {
    auto forecast = evaluate(graph_, cost_, candidate.bucket, request_);
    ++evaluations_;
    if (!forecast) {
      failed_.push_back({std::move(candidate.name), std::move(candidate.bucket), HUGE_VAL,
                         forecast.error().message});
      return;
    }
    judged_.push_back({std::move(candidate), std::move(*forecast)});
  }

  template <class Fits>
  const Judged* best(const Fits& fits) const {
    const Judged* best = nullptr;
    for (const Judged& one : judged_) {
      const bool better = best == nullptr || one.forecast.score_us() < best->forecast.score_us();
      if (fits(one.candidate) && better) best = &one;
    }
    return best;
  }
  const std::vector<Judged>& judged() const { return judged_; }
  std::vector<PassAlternative> failed() const { return failed_; }
  int64_t evaluations() const { return evaluations_; }

 private:
  const graph::Graph& graph_;
  const cost::CostModel& cost_;
  const PassRequest& request_;
  std::vector<Judged> judged_;
  std::vector<PassAlternative> failed_;
  int64_t evaluations_ = 0;
};

bool cuts(const Strategy& strategy) {
  return strategy.cut_outputs || strategy.cut_one_row || strategy.cut_rows || strategy.cut_inputs;
}

bool co_executes(const plan::RowsBucket& bucket) {
  return std::any_of(bucket.placements.begin(), bucket.placements.end(),
                     [](const plan::Placement& placement) { return placement.parts.size() > 1; });
}

double ms(double us) { return us / 1e3; }

std::string reason_for(const Judged& chosen, const Judged* single, const Judged* rival,
                       const Strategy& strategy) {
  std::string text =
      fmt::format("{} takes {:.2f} ms", chosen.candidate.name, ms(chosen.forecast.score_us()));
  if (single == nullptr) return text + "; no device can have the whole pass alone";
  const double alone = single->forecast.score_us();
  if (&chosen == single) {
    if (rival == nullptr) return text + "; the strategy shares nothing out, or nothing can be";
    const double gain = 100 * (1 - rival->forecast.score_us() / alone);
    text += fmt::format("; co-execution is refused: {} takes {:.2f} ms, {:.1f} % {}",
                        rival->candidate.name, ms(rival->forecast.score_us()), std::abs(gain),
                        gain > 0 ? "less" : "more");
    if (gain > 0) {
      text += fmt::format(", below the {:.0f} % that it must gain", 100 * strategy.least_gain);
    }
    return text;
  }
  const double gain = 100 * (1 - chosen.forecast.score_us() / alone);
  return text + fmt::format(", {} {:.2f} ms: {:.1f} % {}", single->candidate.name, ms(alone),
                            std::abs(gain), gain >= 0 ? "less" : "more, and not guarded");
}

PassPlan finish(const Contest& contest, const Judged& chosen, const Judged* single,
                std::string reason) {
  PassPlan plan;
  plan.bucket = chosen.candidate.bucket;
  plan.name = chosen.candidate.name;
  plan.reason = std::move(reason);
  plan.forecast = chosen.forecast;
  plan.co_executes = co_executes(chosen.candidate.bucket);
  if (single != nullptr) {
    plan.best_single = single->candidate.name;
    plan.best_single_us = single->forecast.score_us();
  }
  for (const Judged& one : contest.judged()) {
    if (&one == &chosen) continue;
    const double more = one.forecast.score_us() / chosen.forecast.score_us() - 1;
    plan.alternatives.push_back(
        {one.candidate.name, one.candidate.bucket, one.forecast.score_us(),
         more >= 0 ? fmt::format("takes {:.1f} % longer", 100 * more)
                   : fmt::format("takes {:.1f} % less, which is not enough", -100 * more)});
  }
  for (PassAlternative& one : contest.failed()) plan.alternatives.push_back(std::move(one));
  std::stable_sort(plan.alternatives.begin(), plan.alternatives.end(),
                   [](const PassAlternative& a, const PassAlternative& b) {
                     return a.predicted_us < b.predicted_us;
                   });
  plan.evaluations = contest.evaluations();
  return plan;
}

}  // namespace

Result<PassPlan> plan_pass(const graph::Graph& graph, const cost::CostModel& cost,
                           const Strategy& strategy, const PassRequest& given) {
  RETURN_IF_ERROR(check(given));
  PassRequest request = given;
  request.build_graphs = request.build_graphs || strategy.rows == Rows::kBuilt;
  ASSIGN_OR_RETURN(const PassSpace space,
                   PassSpace::create(graph, cost, request, strategy.operand_order));
  PassEvaluator evaluator(space);
  ASSIGN_OR_RETURN(Schedules schedules, search_schedules(space, strategy, evaluator));
  Contest contest(graph, cost, request);
  for (Candidate& candidate : schedules.candidates) contest.enter(std::move(candidate));
  if (strategy.device.empty()) {
    for (Candidate& candidate : single_candidates(space)) contest.enter(std::move(candidate));
  }
  const Judged* single = contest.best([](const Candidate& c) { return c.single; });
  const Judged* rival = contest.best([](const Candidate& c) { return !c.single; });
  const bool guarded = cuts(strategy) && strategy.guard;
  const bool only_one = !strategy.device.empty() || strategy.static_only;
  const Judged* chosen = only_one ? contest.best([&](const Candidate& c) {
    return strategy.static_only ? c.name == strategy.name : true;
  })
                                  : rival;
  if (chosen == nullptr) chosen = single;
  if (chosen == nullptr) {
    const auto failed = contest.failed();
    return make_error(ErrorCode::kUnsupported, "strategy {}: {}", strategy.name,
                      failed.empty() ? "nothing can compute the pass" : failed.front().why_not);
  }
  if (guarded && single != nullptr && rival != nullptr) {
    const double most = single->forecast.score_us() * (1 - strategy.least_gain);
    chosen = rival->forecast.score_us() < most ? rival : single;
  }
  PassPlan plan = finish(contest, *chosen, single, reason_for(*chosen, single, rival, strategy));
  plan.evaluations += evaluator.evaluations();
  if (chosen->candidate.name.ends_with(", tuned")) plan.edits = std::move(schedules.steps);
  return plan;
}

Result<plan::RowsBucket> single_device_bucket(const graph::Graph& graph,
                                              const cost::CostModel& cost, size_t device,
                                              const PassRequest& request) {
  RETURN_IF_ERROR(check(request));
  if (device >= cost.devices().size()) {
    return make_error(ErrorCode::kInvalidArgument, "device {} of {}", device,
                      cost.devices().size());
  }
  ASSIGN_OR_RETURN(const PassSpace space, PassSpace::create(graph, cost, request));
  for (Candidate& candidate : single_candidates(space)) {
    if (candidate.name == cost.devices()[device].name + " alone") return candidate.bucket;
  }
  return make_error(ErrorCode::kUnsupported, "device {} has no path for {} rows",
                    cost.devices()[device].name, request.rows);
}

}  // namespace troika::planner
