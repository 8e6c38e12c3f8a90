#include "troika/planner/model_plan.h"

#include <algorithm>

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

}  // namespace

Result<ModelPlan> plan_model(const graph::Graph& graph, const cost::CostModel& cost,
                             const Strategy& strategy, const ModelRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> rows, rows_of(request));
  ModelPlan result;
  for (const int64_t count : rows) {
    PassRequest pass = request.pass;
    pass.rows = count;
    pass.depth = count == 1 ? request.decode_depth : 0;
    ASSIGN_OR_RETURN(PassPlan planned, plan_pass(graph, cost, strategy, pass));
    result.passes.push_back(std::move(planned));
  }
  plan::Plan& plan = result.plan;
  plan.model_fingerprint = graph.model->fingerprint();
  plan.kv_type = request.kv_type;
  if (request.pass.integer_activations) plan.activations = "int8";
  plan.reason = reason_of(strategy, result.passes);
  for (const PassPlan& pass : result.passes) plan.buckets.push_back(pass.bucket);
  for (const cost::DeviceFacts& facts : cost.devices()) {
    const bool used = std::any_of(plan.buckets.begin(), plan.buckets.end(),
                                  [&](const auto& bucket) { return uses(bucket, facts.name); });
    if (used) plan.devices.push_back(facts.name);
  }
  RETURN_IF_ERROR(plan::check(plan, graph));
  return result;
}

}  // namespace troika::planner
