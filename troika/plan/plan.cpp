#include "troika/plan/plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace troika::plan {
namespace {

constexpr std::array kLayerStages = {graph::Stage::kG1, graph::Stage::kAttention,
                                     graph::Stage::kG2};
constexpr std::array kOuterStages = {graph::Stage::kInput, graph::Stage::kHead};

std::string place_name(graph::Stage stage, int32_t layer) {
  return layer < 0 ? std::string(to_string(stage))
                   : fmt::format("{} layer {}", to_string(stage), layer);
}

bool is_outer(graph::Stage stage) {
  return std::find(kOuterStages.begin(), kOuterStages.end(), stage) != kOuterStages.end();
}

// Each (stage, layer) that is placed.
using Coverage = std::set<std::pair<graph::Stage, int32_t>>;

// The first one placed twice is an error: the time of a check stays bounded by the graph's size.
Status cover(const RowsBucket& bucket, graph::Stage stage, int32_t layer, Coverage& coverage) {
  if (coverage.insert({stage, layer}).second) return {};
  return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {} is placed twice",
                    bucket.max_rows, place_name(stage, layer));
}

Status count_placement(const Plan& plan, const graph::Graph& graph, const RowsBucket& bucket,
                       const Placement& placement, Coverage& coverage) {
  const auto where = fmt::format("plan: bucket of {} rows, {}", bucket.max_rows,
                                 place_name(placement.stage, placement.first_layer));
  if (std::find(plan.devices.begin(), plan.devices.end(), placement.device) == plan.devices.end()) {
    return make_error(ErrorCode::kInvalidData, "{}: device \"{}\" is not among the plan's devices",
                      where, placement.device);
  }
  if (is_outer(placement.stage)) {
    if (placement.first_layer != -1 || placement.last_layer != -1) {
      return make_error(ErrorCode::kInvalidData, "{}: this stage has no layers", where);
    }
    return cover(bucket, placement.stage, -1, coverage);
  }
  if (placement.first_layer < 0 || placement.last_layer < placement.first_layer ||
      placement.last_layer >= graph.n_layers) {
    return make_error(ErrorCode::kInvalidData, "{}: layers {} to {} are not in 0 to {}", where,
                      placement.first_layer, placement.last_layer, graph.n_layers - 1);
  }
  for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
    RETURN_IF_ERROR(cover(bucket, placement.stage, layer, coverage));
  }
  return {};
}

Status check_coverage(const graph::Graph& graph, const RowsBucket& bucket,
                      const Coverage& coverage) {
  const auto once = [&](graph::Stage stage, int32_t layer) -> Status {
    if (coverage.contains({stage, layer})) return {};
    return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {} is not placed",
                      bucket.max_rows, place_name(stage, layer));
  };
  for (const graph::Stage stage : kOuterStages) RETURN_IF_ERROR(once(stage, -1));
  for (int32_t layer = 0; layer < graph.n_layers; ++layer) {
    for (const graph::Stage stage : kLayerStages) RETURN_IF_ERROR(once(stage, layer));
  }
  return {};
}

Status check_types(const Plan& plan) {
  if (plan.activations != "f32") {
    return make_error(ErrorCode::kInvalidData, "plan: activations are \"{}\", not f32",
                      plan.activations);
  }
  if (plan.kv_type != "f32" && plan.kv_type != "f16") {
    return make_error(ErrorCode::kInvalidData, "plan: kv_type is \"{}\", not f32 or f16",
                      plan.kv_type);
  }
  return {};
}

}  // namespace

std::string_view to_string(Cut cut) {
  switch (cut) {
    case Cut::kNone:
      return "none";
  }
  return "";
}

const RowsBucket* Plan::bucket(int64_t rows) const {
  for (const RowsBucket& candidate : buckets) {
    if (rows <= candidate.max_rows) return &candidate;
  }
  return nullptr;
}

Plan single_device_plan(const graph::Graph& graph, const std::string& device, int64_t max_rows,
                        const std::string& kv_type) {
  Plan plan;
  plan.model_fingerprint = graph.model->fingerprint();
  plan.devices = {device};
  plan.kv_type = kv_type;
  plan.reason = "one device: nothing to divide";
  RowsBucket bucket;
  bucket.max_rows = max_rows;
  for (const graph::Stage stage : kOuterStages) {
    bucket.placements.push_back({stage, -1, -1, Cut::kNone, device});
  }
  for (const graph::Stage stage : kLayerStages) {
    bucket.placements.push_back(
        {stage, 0, static_cast<int32_t>(graph.n_layers - 1), Cut::kNone, device});
  }
  plan.buckets.push_back(std::move(bucket));
  return plan;
}

Status check(const Plan& plan, const graph::Graph& graph) {
  if (plan.model_fingerprint != graph.model->fingerprint()) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: made for model {:016x}, but this one is {:016x}",
                      plan.model_fingerprint, graph.model->fingerprint());
  }
  RETURN_IF_ERROR(check_types(plan));
  if (plan.devices.empty()) return make_error(ErrorCode::kInvalidData, "plan: names no device");
  for (auto device = plan.devices.begin(); device != plan.devices.end(); ++device) {
    if (std::find(plan.devices.begin(), device, *device) != device) {
      return make_error(ErrorCode::kInvalidData, "plan: names device \"{}\" twice", *device);
    }
  }
  if (plan.buckets.empty()) return make_error(ErrorCode::kInvalidData, "plan: has no buckets");
  int64_t last = 0;
  for (const RowsBucket& bucket : plan.buckets) {
    if (bucket.max_rows <= last) {
      return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows comes after one of {}",
                        bucket.max_rows, last);
    }
    if (bucket.max_rows > kMaxPlanRows) {
      return make_error(ErrorCode::kInvalidData,
                        "plan: a bucket of {} rows: {} at most are allowed", bucket.max_rows,
                        kMaxPlanRows);
    }
    last = bucket.max_rows;
    Coverage coverage;
    for (const Placement& placement : bucket.placements) {
      RETURN_IF_ERROR(count_placement(plan, graph, bucket, placement, coverage));
    }
    RETURN_IF_ERROR(check_coverage(graph, bucket, coverage));
  }
  return {};
}

}  // namespace troika::plan
