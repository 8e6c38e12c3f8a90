#include "troika/planner/model_plan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <system_error>
#include <thread>

#include "troika/base/cores.h"

namespace troika::planner {
namespace {

Result<std::vector<int64_t>> rows_of(const ModelRequest& request) {
  std::vector<int64_t> rows = request.rows;
  if (request.max_rows < 1 || request.max_rows > kMaxPassRows) {
    return make_error(ErrorCode::kInvalidArgument,
                      "passes of up to {} rows: 1 to {} can be planned", request.max_rows,
                      kMaxPassRows);
  }
  if (rows.empty()) rows.assign(std::begin(kDefaultRows), std::end(kDefaultRows));
  std::erase_if(rows, [&](int64_t one) { return one < 1 || one >= request.max_rows; });
  rows.push_back(request.max_rows);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (rows.size() > plan::kMaxPlanBuckets) {
    return make_error(ErrorCode::kInvalidArgument, "{} buckets of rows, {} at most can be planned",
                      rows.size(), plan::kMaxPlanBuckets);
  }
  return rows;
}

bool uses(const plan::RowsBucket& bucket, const std::string& device) {
  return std::any_of(bucket.placements.begin(), bucket.placements.end(), [&](const auto& p) {
    return std::any_of(p.parts.begin(), p.parts.end(),
                       [&](const plan::Part& part) { return part.device == device; });
  });
}

std::string reason_of(const Strategy& strategy, const std::vector<PassPlan>& passes) {
  std::string text = strategy.name;
  for (const PassPlan& pass : passes) {
    text += fmt::format("; up to {} rows: {}", pass.bucket.max_rows, pass.reason);
  }
  return text;
}

// A plan holds no long ones.
std::string short_text(const std::string& text) { return text.substr(0, plan::kMaxRejectedText); }

plan::Prediction prediction_of(const PassPlan& pass, const cost::CostModel& cost) {
  const Forecast& forecast = pass.forecast;
  plan::Prediction predicted;
  predicted.us = forecast.us;
  predicted.p90_us = forecast.p90_us;
  predicted.mj = forecast.mj();
  predicted.reason = short_text(pass.reason);
  for (size_t i = 0; i < forecast.busy_us.size(); ++i) {
    if (forecast.busy_us[i] <= 0) continue;
    predicted.devices.push_back({cost.devices()[i].name, forecast.busy_us[i],
                                 forecast.weight_bytes[i], forecast.energy_mj[i]});
  }
  for (const PassAlternative& other : pass.alternatives) {
    if (predicted.rejected.size() == plan::kMaxRejected) break;
    const bool can_be = std::isfinite(other.predicted_us);
    predicted.rejected.push_back({short_text(other.name), can_be ? other.predicted_us : 0,
                                  can_be ? other.predicted_mj : 0, short_text(other.why_not)});
  }
  return predicted;
}

// Passes of so many rows each, planned on several threads; a plan does not depend on the others.
class PassPlanner {
 public:
  PassPlanner(const graph::Graph& graph, const cost::CostModel& cost, const Strategy& strategy,
              const ModelRequest& request, const std::vector<int64_t>& rows)
      : graph_(graph),
        cost_(cost),
        strategy_(strategy),
        request_(request),
        rows_(rows),
        plans_(rows.size()) {}

  // By rows; the first error that they lead to, in their order.
  Result<std::vector<PassPlan>> run() {
    const size_t cores = request_.threads > 0 ? static_cast<size_t>(request_.threads)
                                              : std::max<size_t>(1, allowed_cores().size());
    std::vector<std::thread> others;
    while (others.size() + 1 < std::min(cores, rows_.size())) {
      try {
        others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // fewer threads plan, slower
      }
    }
    work();
    for (std::thread& other : others) other.join();
    std::vector<PassPlan> plans;
    for (Result<PassPlan>& plan : plans_) {
      if (!plan) return tl::unexpected<Error>(std::move(plan).error());
      plans.push_back(std::move(*plan));
    }
    return plans;
  }

 private:
  // The longest passes first: they take longest.
  void work() {
    for (size_t taken = next_++; taken < rows_.size(); taken = next_++) {
      const size_t index = rows_.size() - 1 - taken;
      PassRequest pass = request_.pass;
      pass.rows = rows_[index];
      pass.depth = pass.rows == 1 ? request_.decode_depth : 0;
      plans_[index] = plan_pass(graph_, cost_, strategy_, pass);
    }
  }

  const graph::Graph& graph_;
  const cost::CostModel& cost_;
  const Strategy& strategy_;
  const ModelRequest& request_;
  const std::vector<int64_t>& rows_;
  std::atomic<size_t> next_ = 0;
  std::vector<Result<PassPlan>> plans_;
};

}  // namespace

Result<ModelPlan> plan_model(const graph::Graph& graph, const cost::CostModel& cost,
                             const Strategy& strategy, const ModelRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> rows, rows_of(request));
  ModelPlan result;
  ASSIGN_OR_RETURN(result.passes, PassPlanner(graph, cost, strategy, request, rows).run());
  plan::Plan& plan = result.plan;
  plan.model_fingerprint = graph.model->fingerprint();
  plan.kv_type = request.kv_type;
  plan.activations = plan::activations_name(request.pass.integer_activations);
  plan.objective = to_string(request.pass.objective);
  plan.reason = reason_of(strategy, result.passes);
  for (const PassPlan& pass : result.passes) {
    plan.buckets.push_back(pass.bucket);
    plan.buckets.back().predicted = prediction_of(pass, cost);
  }
  for (const cost::DeviceFacts& facts : cost.devices()) {
    const bool used = std::any_of(plan.buckets.begin(), plan.buckets.end(),
                                  [&](const auto& bucket) { return uses(bucket, facts.name); });
    if (used) plan.devices.push_back(facts.name);
  }
  RETURN_IF_ERROR(plan::check(plan, graph));
  return result;
}

}  // namespace troika::planner
