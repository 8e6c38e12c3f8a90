// Plan: the decisions. Who computes which part of the forward pass, for each number of rows; plain
// JSON that a person can read and diff.
//
// A plan names operators by stage and layer range, so that it stays short however deep the model
// is. The only cut that is lowered so far is kNone (a stage runs whole on one device).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/graph/graph.h"

namespace troika::plan {

inline constexpr int kPlanVersion = 1;
// More rows than any pass has: what check() and from_json() allow.
inline constexpr int64_t kMaxPlanRows = int64_t{1} << 24;

// How an operator is divided among devices.
enum class Cut { kNone };
std::string_view to_string(Cut cut);  // "none"

// Who computes the operators of a stage in layers [first_layer, last_layer] (-1, -1 outside
// layers).
struct Placement {
  graph::Stage stage = graph::Stage::kInput;
  int32_t first_layer = -1;
  int32_t last_layer = -1;
  Cut cut = Cut::kNone;
  std::string device;  // one of Plan::devices
};

// The placements that hold for passes of at most `max_rows` rows.
struct RowsBucket {
  int64_t max_rows = 0;
  std::vector<Placement> placements;
};

struct Plan {
  uint64_t model_fingerprint = 0;
  std::vector<std::string> devices;  // device strings, as opened
  std::string activations = "f32";
  std::string kv_type = "f32";
  std::string reason;               // why this plan, for people
  std::vector<RowsBucket> buckets;  // ascending max_rows

  // The bucket for a pass of `rows` rows; nullptr if none is large enough.
  const RowsBucket* bucket(int64_t rows) const;
};

// Everything on one device, for passes of up to `max_rows` rows.
Plan single_device_plan(const graph::Graph& graph, const std::string& device, int64_t max_rows,
                        const std::string& kv_type);

// Every stage of every layer placed exactly once, on known devices, in ascending buckets, for this
// model, with types that exist. kInvalidData naming the place.
Status check(const Plan& plan, const graph::Graph& graph);

std::string to_json(const Plan& plan);
// Shape and types are checked here, meaning by check(). kInvalidData naming the field.
Result<Plan> from_json(std::string_view text);

}  // namespace troika::plan
