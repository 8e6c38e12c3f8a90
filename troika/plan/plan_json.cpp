// The Plan record as JSON.
#include <nlohmann/json.hpp>

#include "troika/base/json_text.h"
#include "troika/plan/json_fields.h"
#include "troika/plan/plan.h"

namespace troika::plan {
namespace {

using nlohmann::json;

// Bounds on what is read: far above any real plan, far below what would hurt.
// No plan within the bounds of plan.h is longer when written.
constexpr size_t kMaxPlanBytes = size_t{16} << 20;
constexpr int64_t kMaxLayers = 100'000;

Result<graph::Stage> stage_from(const std::string& name, const std::string& path) {
  for (const graph::Stage stage :
       {graph::Stage::kInput, graph::Stage::kG1, graph::Stage::kAttention, graph::Stage::kG2,
        graph::Stage::kHead}) {
    if (to_string(stage) == name) return stage;
  }
  return make_error(ErrorCode::kInvalidData,
                    "plan: {}.stage is {}, not one of input, G1, A, G2, head", path, shown(name));
}

Result<Part> part_from(const json& object, const std::string& path) {
  Part part;
  RETURN_IF_ERROR(no_other_fields(object, path, {"device", "share", "stationary"}));
  ASSIGN_OR_RETURN(const json* device, field(object, path, "device"));
  ASSIGN_OR_RETURN(part.device, name_from(*device, path + ".device"));
  ASSIGN_OR_RETURN(part.share, number_field(object, path, "share"));
  if (object.contains("stationary")) {
    ASSIGN_OR_RETURN(const std::string operand, string_field(object, path, "stationary"));
    if (operand != "input" && operand != "weight") {
      return make_error(ErrorCode::kInvalidData, "plan: {}.stationary is {}, not input or weight",
                        path, shown(operand));
    }
    part.input_stationary = operand == "input";
  }
  return part;
}

Status optional_fields(const json& object, const std::string& path, Placement& placement) {
  if (const auto op = object.find("op"); op != object.end()) {
    ASSIGN_OR_RETURN(placement.op, name_from(*op, path + ".op"));
  }
  if (object.contains("chunk")) {
    ASSIGN_OR_RETURN(const int64_t chunk, int_field(object, path, "chunk", -1, kMaxChunks));
    placement.chunk = static_cast<int32_t>(chunk);
  }
  if (object.contains("join_chunks")) {
    ASSIGN_OR_RETURN(const int64_t count, int_field(object, path, "join_chunks", 1, kMaxChunks));
    placement.join_chunks = static_cast<int32_t>(count);
  }
  if (object.contains("delay_us")) {
    ASSIGN_OR_RETURN(placement.delay_us, number_field(object, path, "delay_us"));
  }
  return {};
}

Result<Placement> placement_from(const json& object, const std::string& path) {
  Placement placement;
  RETURN_IF_ERROR(no_other_fields(object, path,
                                  {"stage", "first_layer", "last_layer", "cut", "parts", "op",
                                   "chunk", "join_chunks", "delay_us"}));
  ASSIGN_OR_RETURN(const std::string stage, string_field(object, path, "stage"));
  ASSIGN_OR_RETURN(placement.stage, stage_from(stage, path));
  ASSIGN_OR_RETURN(const int64_t first, int_field(object, path, "first_layer", -1, kMaxLayers));
  ASSIGN_OR_RETURN(const int64_t last, int_field(object, path, "last_layer", -1, kMaxLayers));
  placement.first_layer = static_cast<int32_t>(first);
  placement.last_layer = static_cast<int32_t>(last);
  ASSIGN_OR_RETURN(const std::string cut, string_field(object, path, "cut"));
  const std::optional<Cut> known = cut_from(cut);
  if (!known) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: {}.cut is {}, not none, weight-centric, activation-centric, hybrid, "
                      "k-cut or paired",
                      path, shown(cut));
  }
  placement.cut = *known;
  RETURN_IF_ERROR(optional_fields(object, path, placement));
  ASSIGN_OR_RETURN(const json* parts, array_field(object, path, "parts"));
  if (parts->size() > kMaxParts) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.parts has {} entries, {} at most", path,
                      parts->size(), kMaxParts);
  }
  for (size_t i = 0; i < parts->size(); ++i) {
    ASSIGN_OR_RETURN(Part part, part_from((*parts)[i], fmt::format("{}.parts[{}]", path, i)));
    placement.parts.push_back(std::move(part));
  }
  return placement;
}

Status chunks_from(const json& object, const std::string& path, RowsBucket& bucket) {
  if (object.contains("in_flight")) {
    ASSIGN_OR_RETURN(bucket.in_flight, int_field(object, path, "in_flight", 0, kMaxPlanRows));
  }
  if (!object.contains("chunks")) return {};
  ASSIGN_OR_RETURN(const json* chunks, array_field(object, path, "chunks"));
  if (chunks->size() > kMaxChunks) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.chunks has {} entries, {} at most", path,
                      chunks->size(), kMaxChunks);
  }
  for (size_t i = 0; i < chunks->size(); ++i) {
    const json entry = {{"rows", (*chunks)[i]}};
    ASSIGN_OR_RETURN(const int64_t rows, int_field(entry, fmt::format("{}.chunks[{}]", path, i),
                                                   "rows", 1, kMaxPlanRows));
    bucket.chunks.push_back(rows);
  }
  return {};
}

Result<OrderEntry> order_entry_from(const json& object, const std::string& path) {
  OrderEntry entry;
  RETURN_IF_ERROR(no_other_fields(
      object, path, {"stage", "first_layer", "last_layer", "first_chunk", "last_chunk"}));
  if (object.contains("stage")) {
    ASSIGN_OR_RETURN(const std::string stage, string_field(object, path, "stage"));
    ASSIGN_OR_RETURN(entry.stage, stage_from(stage, path));
  }
  const auto read = [&](const char* key, int64_t most, int32_t& value) -> Status {
    ASSIGN_OR_RETURN(const int64_t number, int_field(object, path, key, 0, most));
    value = static_cast<int32_t>(number);
    return {};
  };
  RETURN_IF_ERROR(read("first_layer", kMaxLayers, entry.first_layer));
  RETURN_IF_ERROR(read("last_layer", kMaxLayers, entry.last_layer));
  RETURN_IF_ERROR(read("first_chunk", kMaxPlanRows, entry.first_chunk));
  RETURN_IF_ERROR(read("last_chunk", kMaxPlanRows, entry.last_chunk));
  return entry;
}

// The name of a rule, or a list.
Status order_from(const json& order, const std::string& path, RowsBucket& bucket) {
  if (order.is_string()) {
    const auto rule = order_rule_from(order.get_ref<const std::string&>());
    if (rule) {
      bucket.order_rule = *rule;
      return {};
    }
  }
  if (!order.is_array() || order.empty()) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: {} is {}, not stages, wavefront, products or a list of entries", path,
                      order.is_array() ? "an empty array" : shown(order));
  }
  if (order.size() > kMaxOrderEntries) {
    return make_error(ErrorCode::kInvalidData, "plan: {} has {} entries, {} at most", path,
                      order.size(), kMaxOrderEntries);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    ASSIGN_OR_RETURN(const OrderEntry entry,
                     order_entry_from(order[i], fmt::format("{}[{}]", path, i)));
    bucket.order.push_back(entry);
  }
  return {};
}

Result<RowsBucket> bucket_from(const json& object, const std::string& path) {
  RowsBucket bucket;
  RETURN_IF_ERROR(no_other_fields(
      object, path,
      {"max_rows", "placements", "chunks", "in_flight", "order", "lag", "predicted"}));
  ASSIGN_OR_RETURN(bucket.max_rows, int_field(object, path, "max_rows", 1, kMaxPlanRows));
  RETURN_IF_ERROR(chunks_from(object, path, bucket));
  if (const auto order = object.find("order"); order != object.end()) {
    RETURN_IF_ERROR(order_from(*order, path + ".order", bucket));
  }
  if (object.contains("lag")) {
    ASSIGN_OR_RETURN(const int64_t lag, int_field(object, path, "lag", 0, kMaxLag));
    bucket.lag = static_cast<int32_t>(lag);
  }
  if (const auto predicted = object.find("predicted"); predicted != object.end()) {
    ASSIGN_OR_RETURN(bucket.predicted, prediction_from(*predicted, path + ".predicted"));
  }
  ASSIGN_OR_RETURN(const json* placements, array_field(object, path, "placements"));
  if (placements->size() > kMaxPlacements) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.placements has {} entries, {} at most",
                      path, placements->size(), kMaxPlacements);
  }
  for (size_t i = 0; i < placements->size(); ++i) {
    ASSIGN_OR_RETURN(Placement placement,
                     placement_from((*placements)[i], fmt::format("{}.placements[{}]", path, i)));
    bucket.placements.push_back(std::move(placement));
  }
  return bucket;
}

json to_json(const Placement& placement) {
  json parts = json::array();
  for (const Part& part : placement.parts) {
    json entry = {{"device", part.device}, {"share", part.share}};
    if (part.input_stationary) entry["stationary"] = "input";
    parts.push_back(std::move(entry));
  }
  json object = {{"stage", to_string(placement.stage)},
                 {"first_layer", placement.first_layer},
                 {"last_layer", placement.last_layer},
                 {"cut", to_string(placement.cut)},
                 {"parts", std::move(parts)}};
  if (!placement.op.empty()) object["op"] = placement.op;
  if (placement.chunk >= 0) object["chunk"] = placement.chunk;
  if (placement.join_chunks > 1) object["join_chunks"] = placement.join_chunks;
  if (placement.delay_us > 0) object["delay_us"] = placement.delay_us;
  return object;
}

json to_json(const OrderEntry& entry) {
  json object = {{"first_layer", entry.first_layer},
                 {"last_layer", entry.last_layer},
                 {"first_chunk", entry.first_chunk},
                 {"last_chunk", entry.last_chunk}};
  if (entry.stage) object["stage"] = to_string(*entry.stage);
  return object;
}

json to_json(const RowsBucket& bucket) {
  json placements = json::array();
  for (const Placement& placement : bucket.placements) placements.push_back(to_json(placement));
  json object = {{"max_rows", bucket.max_rows}, {"placements", std::move(placements)}};
  if (!bucket.chunks.empty()) object["chunks"] = bucket.chunks;
  if (bucket.in_flight > 0) object["in_flight"] = bucket.in_flight;
  if (bucket.predicted) object["predicted"] = to_json(*bucket.predicted);
  if (bucket.order_rule != OrderRule::kStages) object["order"] = to_string(bucket.order_rule);
  if (bucket.lag > 0) object["lag"] = bucket.lag;
  if (!bucket.order.empty()) {
    object["order"] = json::array();
    for (const OrderEntry& entry : bucket.order) object["order"].push_back(to_json(entry));
  }
  return object;
}

// Placements and entries of orders of all buckets together.
Status check_totals(const Plan& plan) {
  size_t placements = 0;
  size_t entries = 0;
  for (const RowsBucket& bucket : plan.buckets) {
    placements += bucket.placements.size();
    entries += bucket.order.size();
  }
  if (placements <= kMaxPlacements && entries <= kMaxOrderEntries) return {};
  return make_error(ErrorCode::kInvalidData,
                    "plan: {} placements and {} entries of orders, {} and {} at most are allowed",
                    placements, entries, kMaxPlacements, kMaxOrderEntries);
}

}  // namespace

std::string to_json(const Plan& plan) {
  json buckets = json::array();
  for (const RowsBucket& bucket : plan.buckets) buckets.push_back(to_json(bucket));
  json object = {
      {"version", kPlanVersion},      {"model", fmt::format("{:016x}", plan.model_fingerprint)},
      {"devices", plan.devices},      {"activations", plan.activations},
      {"kv_type", plan.kv_type},      {"reason", plan.reason},
      {"buckets", std::move(buckets)}};
  if (!plan.objective.empty()) object["objective"] = plan.objective;
  return object.dump(2, ' ', false, json::error_handler_t::replace);
}

Result<Plan> from_json(std::string_view text) {
  if (text.size() > kMaxPlanBytes) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: {} bytes, more than the {} that a plan may have", text.size(),
                      kMaxPlanBytes);
  }
  constexpr JsonBounds kBounds{16, 250'000, 100};
  RETURN_IF_ERROR(check_json_size(text, "plan", kBounds));
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return tl::unexpected<Error>(json_error(text, "plan"));
  RETURN_IF_ERROR(check_json_keys(text, "plan"));

  ASSIGN_OR_RETURN(const int64_t version, int_field(root, "plan", "version", 0, INT32_MAX));
  if (version != kPlanVersion) {
    return make_error(ErrorCode::kUnsupported, "plan: version {}, but this build reads version {}",
                      version, kPlanVersion);
  }
  RETURN_IF_ERROR(no_other_fields(
      root, "plan",
      {"version", "model", "devices", "activations", "kv_type", "reason", "objective", "buckets"}));
  Plan plan;
  ASSIGN_OR_RETURN(const std::string model, string_field(root, "plan", "model"));
  size_t used = 0;
  if (model.size() == 16 && model.find_first_not_of("0123456789abcdef") == std::string::npos) {
    plan.model_fingerprint = std::stoull(model, &used, 16);
  }
  if (used != model.size() || model.empty()) {
    return make_error(ErrorCode::kInvalidData, "plan: plan.model is {}, not 16 hex digits",
                      shown(model));
  }
  ASSIGN_OR_RETURN(const json* activations, field(root, "plan", "activations"));
  ASSIGN_OR_RETURN(plan.activations, name_from(*activations, "plan.activations"));
  ASSIGN_OR_RETURN(const json* kv_type, field(root, "plan", "kv_type"));
  ASSIGN_OR_RETURN(plan.kv_type, name_from(*kv_type, "plan.kv_type"));
  ASSIGN_OR_RETURN(plan.reason, string_field(root, "plan", "reason"));
  if (root.contains("objective")) {
    ASSIGN_OR_RETURN(const json* objective, field(root, "plan", "objective"));
    ASSIGN_OR_RETURN(plan.objective, name_from(*objective, "plan.objective"));
  }
  ASSIGN_OR_RETURN(const json* devices, array_field(root, "plan", "devices"));
  ASSIGN_OR_RETURN(const json* buckets, array_field(root, "plan", "buckets"));
  if (devices->size() > kMaxPlanDevices || buckets->size() > kMaxPlanBuckets) {
    return make_error(
        ErrorCode::kInvalidData,
        "plan: {} devices and {} buckets, more than the {} and {} that a plan may have",
        devices->size(), buckets->size(), kMaxPlanDevices, kMaxPlanBuckets);
  }
  for (size_t i = 0; i < devices->size(); ++i) {
    ASSIGN_OR_RETURN(std::string device,
                     name_from((*devices)[i], fmt::format("plan.devices[{}]", i)));
    plan.devices.push_back(std::move(device));
  }
  for (size_t i = 0; i < buckets->size(); ++i) {
    ASSIGN_OR_RETURN(RowsBucket bucket,
                     bucket_from((*buckets)[i], fmt::format("plan.buckets[{}]", i)));
    plan.buckets.push_back(std::move(bucket));
  }
  RETURN_IF_ERROR(check_totals(plan));
  return plan;
}

}  // namespace troika::plan
