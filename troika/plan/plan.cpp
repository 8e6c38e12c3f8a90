#include "troika/plan/plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace troika::plan {
namespace {

struct CutName {
  Cut cut;
  std::string_view name;
};
constexpr std::array kCutNames = {
    CutName{Cut::kNone, "none"},
    CutName{Cut::kWeightCentric, "weight-centric"},
    CutName{Cut::kActivationCentric, "activation-centric"},
    CutName{Cut::kHybrid, "hybrid"},
    CutName{Cut::kK, "k-cut"},
    CutName{Cut::kPaired, "paired"},
};

}  // namespace

std::string_view to_string(Cut cut) {
  for (const CutName& entry : kCutNames) {
    if (entry.cut == cut) return entry.name;
  }
  return "";
}

std::optional<Cut> cut_from(std::string_view name) {
  for (const CutName& entry : kCutNames) {
    if (entry.name == name) return entry.cut;
  }
  return std::nullopt;
}

std::string_view to_string(OrderRule rule) {
  if (rule == OrderRule::kProducts) return "products";
  return rule == OrderRule::kWavefront ? "wavefront" : "stages";
}

std::optional<OrderRule> order_rule_from(std::string_view name) {
  for (const OrderRule rule : {OrderRule::kStages, OrderRule::kWavefront, OrderRule::kProducts}) {
    if (to_string(rule) == name) return rule;
  }
  return std::nullopt;
}

std::string order_name(const RowsBucket& bucket) {
  if (!bucket.order.empty()) return "list";
  std::string name(to_string(bucket.order_rule));
  if (bucket.order_rule == OrderRule::kProducts)
    name += fmt::format(", {} turns apart", bucket.lag);
  return name;
}

int32_t device_index(const std::vector<std::string>& devices, const Part& part) {
  return static_cast<int32_t>(std::find(devices.begin(), devices.end(), part.device) -
                              devices.begin());
}

std::vector<double> Placement::shares() const {
  std::vector<double> shares;
  for (const Part& part : parts) shares.push_back(part.share);
  return shares;
}

int rank(const Placement& placement) {
  return (placement.op.empty() ? 0 : 2) + (placement.chunk < 0 ? 0 : 1);
}

const RowsBucket* Plan::bucket(int64_t rows) const {
  for (const RowsBucket& candidate : buckets) {
    if (rows <= candidate.max_rows) return &candidate;
  }
  return nullptr;
}

std::string_view product_name(const graph::Graph& graph, graph::OpId op) {
  const std::string_view name = graph.tensor(graph.op(op).output).name;
  return name.substr(name.rfind('.') + 1);
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
  const auto place = [&](graph::Stage stage, int32_t first, int32_t last) {
    Placement placement;
    placement.stage = stage;
    placement.first_layer = first;
    placement.last_layer = last;
    placement.parts.push_back({device});
    bucket.placements.push_back(std::move(placement));
  };
  const auto last = static_cast<int32_t>(graph.n_layers - 1);
  place(graph::Stage::kInput, -1, -1);
  place(graph::Stage::kHead, -1, -1);
  for (const auto stage : {graph::Stage::kG1, graph::Stage::kAttention, graph::Stage::kG2}) {
    place(stage, 0, last);
  }
  plan.buckets.push_back(std::move(bucket));
  return plan;
}

}  // namespace troika::plan
