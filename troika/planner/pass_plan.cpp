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
  for (const double deviation : {request.variation.deviation, request.variation.device_deviation}) {
    if (!(deviation >= 0 && deviation <= 1)) return refuse("deviation", deviation);
  }
  return {};
}

// Devices of unknown power are left out where energy counts.
std::string left_out(const cost::CostModel& cost, const Objective& objective) {
  std::string names;
  for (size_t device = 0; objective.needs_power() && device < cost.devices().size(); ++device) {
    if (has_power(cost, device)) continue;
    names += (names.empty() ? "" : ", ") + cost.devices()[device].name;
  }
  return names;
}

Status check_power(const cost::CostModel& cost, const Objective& objective) {
  if (!objective.needs_power()) return {};
  for (size_t device = 0; device < cost.devices().size(); ++device) {
    if (has_power(cost, device)) return {};
  }
  return make_error(ErrorCode::kUnsupported, "objective {}: the power of no device is known",
                    to_string(objective));
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
      failed_.push_back({std::move(candidate.name), std::move(candidate.bucket), HUGE_VAL, 0,
                         forecast.error().message});
      return;
    }
    judged_.push_back({std::move(candidate), std::move(*forecast)});
  }

  double score(const Judged& one) const {
    return request_.objective.score(one.forecast.score_us(), one.forecast.mj());
  }

  template <class Fits>
  const Judged* best(const Fits& fits) const {
    const Judged* best = nullptr;
    for (const Judged& one : judged_) {
      if (fits(one.candidate) && (best == nullptr || score(one) < score(*best))) best = &one;
    }
    return best;
  }
  bool has(const std::string& name) const {
    return std::any_of(judged_.begin(), judged_.end(),
                       [&](const Judged& one) { return one.candidate.name == name; });
  }
  const PassRequest& request() const { return request_; }
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

// "3.21 ms", or "3.21 ms and 12.3 mJ".
std::string amount(const Forecast& forecast, const Objective& objective) {
  std::string text = fmt::format("{:.2f} ms", forecast.score_us() / 1e3);
  if (objective.needs_power()) text += fmt::format(" and {:.1f} mJ", forecast.mj());
  return text;
}

// "; no plan was found that keeps deadline=5", or nothing.
std::string limit_note(const Judged& chosen, const Objective& objective) {
  if (objective.keeps_limit(chosen.forecast.score_us(), chosen.forecast.mj())) return {};
  return fmt::format("; nothing that was tried keeps {}", to_string(objective));
}

std::string reason_for(const Contest& contest, const Judged& chosen, const Judged* single,
                       const Judged* rival, const Strategy& strategy) {
  const Objective& objective = contest.request().objective;
  std::string text =
      fmt::format("{} takes {}", chosen.candidate.name, amount(chosen.forecast, objective));
  if (single == nullptr) return text + "; no device can have the whole pass alone";
  const double alone = contest.score(*single);
  const bool by_time = objective.kind == Objective::Kind::kTime;
  const std::string by = by_time ? "" : fmt::format(" by {}", to_string(objective));
  if (&chosen == single) {
    if (rival == nullptr) return text + "; the strategy shares nothing out, or nothing can be";
    const double gain = 100 * (1 - contest.score(*rival) / alone);
    text += fmt::format("; co-execution is refused: {} takes {}, {:.1f} % {}{}",
                        rival->candidate.name, amount(rival->forecast, objective), std::abs(gain),
                        gain > 0 ? "less" : "more", by);
    if (gain > 0) {
      text += fmt::format(", below the {:.0f} % that it must gain", 100 * strategy.least_gain);
    }
    return text + limit_note(chosen, objective);
  }
  const double gain = 100 * (1 - contest.score(chosen) / alone);
  return text +
         fmt::format(", {} {}: {:.1f} % {}{}", single->candidate.name,
                     amount(single->forecast, objective), std::abs(gain),
                     gain >= 0 ? "less" : "more, and not guarded", by) +
         limit_note(chosen, objective);
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
    plan.best_single_mj = single->forecast.mj();
  }
  std::vector<const Judged*> others;
  for (const Judged& one : contest.judged()) {
    if (&one != &chosen) others.push_back(&one);
  }
  std::stable_sort(others.begin(), others.end(), [&](const Judged* a, const Judged* b) {
    return contest.score(*a) < contest.score(*b);
  });
  const bool by_time = contest.request().objective.kind == Objective::Kind::kTime;
  for (const Judged* one : others) {
    const double more = contest.score(*one) / contest.score(chosen) - 1;
    const char* const what =
        by_time ? (more >= 0 ? "takes {:.1f} % longer" : "takes {:.1f} % less, which is not enough")
                : (more >= 0 ? "is {:.1f} % worse" : "is {:.1f} % better, which is not enough");
    plan.alternatives.push_back({one->candidate.name, one->candidate.bucket,
                                 one->forecast.score_us(), one->forecast.mj(),
                                 fmt::format(fmt::runtime(what), 100 * std::abs(more))});
  }
  for (PassAlternative& one : contest.failed()) plan.alternatives.push_back(std::move(one));
  plan.evaluations = contest.evaluations();
  return plan;
}

}  // namespace

Result<PassPlan> plan_pass(const graph::Graph& graph, const cost::CostModel& cost,
                           const Strategy& strategy, const PassRequest& given) {
  RETURN_IF_ERROR(check(given));
  RETURN_IF_ERROR(check_power(cost, given.objective));
  PassRequest request = given;
  request.build_graphs = request.build_graphs || strategy.rows == Rows::kBuilt;
  ASSIGN_OR_RETURN(const PassSpace space,
                   PassSpace::create(graph, cost, request, strategy.operand_order));
  PassEvaluator evaluator(space);
  ASSIGN_OR_RETURN(Schedules schedules, search_schedules(space, strategy, evaluator));
  Contest contest(graph, cost, request);
  for (Candidate& candidate : schedules.candidates) contest.enter(std::move(candidate));
  if (strategy.device.empty()) {
    for (Candidate& candidate : single_candidates(space)) {
      if (!contest.has(candidate.name)) contest.enter(std::move(candidate));
    }
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
    const double most = contest.score(*single) * (1 - strategy.least_gain);
    chosen = contest.score(*rival) < most ? rival : single;
  }
  PassPlan plan =
      finish(contest, *chosen, single, reason_for(contest, *chosen, single, rival, strategy));
  plan.evaluations += evaluator.evaluations();
  const std::string without = left_out(cost, request.objective);
  if (!without.empty()) plan.reason += fmt::format("; power not known, not used: {}", without);
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
