// Plan: the decisions. Who computes which part of the forward pass, for each number of rows; plain
// JSON that a person can read and diff.
//
// A plan names operators by stage, product and layer range, so that it stays short however deep the
// model is. docs/execution.md draws each cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/graph/graph.h"
#include "troika/plan/prediction.h"

namespace troika::plan {

inline constexpr int kPlanVersion = 2;
// More rows than any pass has: what check() and from_json() allow.
inline constexpr int64_t kMaxPlanRows = int64_t{1} << 24;
inline constexpr size_t kMaxPlanDevices = 64;
inline constexpr size_t kMaxPlanBuckets = 64;
// Of all buckets together: keeps the JSON of an accepted plan under what is read back.
inline constexpr size_t kMaxPlacements = 2048;
inline constexpr size_t kMaxParts = 16;
inline constexpr size_t kMaxChunks = 256;
inline constexpr size_t kMaxOrderEntries = 8192;  // of all buckets together
inline constexpr int32_t kMaxLag = 4096;          // turns

// How an operator y[M,N] = x[M,K] W[N,K]^T is divided among devices.
enum class Cut {
  kNone,               // whole on one device
  kWeightCentric,      // along N: each device computes some outputs of all rows
  kActivationCentric,  // along M: each device computes all outputs of some rows
  kHybrid,             // along N, with M padded to one standard length for static-shape devices
  kK,                  // along K: partial sums, which are added where they are needed
  // Along N, then along K on the same device's slice: q/k/v by heads, attention by heads, o along
  // K; gate and up along N, down along K. A layer joins twice.
  kPaired,
};
// "none", "weight-centric", "activation-centric", "hybrid", "k-cut", "paired"
std::string_view to_string(Cut cut);
std::optional<Cut> cut_from(std::string_view name);

// What one device gets of a cut operator.
struct Part {
  std::string device;  // one of Plan::devices
  double share = 1;    // of what is cut; relative to the other parts' shares
  // Which operand of a product stays in place while the other streams past it, on devices that can
  // choose.
  bool input_stationary = false;
};

// The part's index among devices that include its own.
int32_t device_index(const std::vector<std::string>& devices, const Part& part);

// Who computes the operators of a stage in layers [first_layer, last_layer] (-1, -1 outside
// layers).
struct Placement {
  graph::Stage stage = graph::Stage::kInput;
  // The product with this name ("q", "k", "v", "o", "gate", "up", "down", "logits"); empty: every
  // operator of the stage that has no placement of its own.
  std::string op;
  int32_t first_layer = -1;
  int32_t last_layer = -1;
  int32_t chunk = -1;  // only in this chunk, over what holds in all of them; -1: all
  // So many neighbouring chunks are computed by one task over all their rows, which reads the
  // weights once; 1: each chunk by its own. Of a whole stage in all chunks, the same number
  // throughout a bucket.
  int32_t join_chunks = 1;
  Cut cut = Cut::kNone;
  std::vector<Part> parts;
  double delay_us = 0;  // a pause before each of its tasks

  // Of its parts, in their order.
  std::vector<double> shares() const;
};

// How special a placement is: of several that could hold for an operator the highest rank does. By
// product and chunk, by product, by chunk, by stage.
int rank(const Placement& placement);

// The order in which the chunks' stages are queued, where no list gives it.
enum class OrderRule {
  kStages,     // all chunks in flight through a stage before any of them through the next
  kWavefront,  // each chunk in flight one stage behind the one before it
  // By turns, runs of products or of other operators, each chunk in flight so many of them behind
  // the one before it as the bucket's lag says.
  kProducts,
};
// "stages", "wavefront", "products"
std::string_view to_string(OrderRule rule);
std::optional<OrderRule> order_rule_from(std::string_view name);

// A piece of a planned order: for each of its layers, for each of its stages, for each of its
// chunks, in ascending order.
struct OrderEntry {
  std::optional<graph::Stage> stage;  // G1, A or G2; none: all three
  int32_t first_layer = 0;
  int32_t last_layer = 0;
  int32_t first_chunk = 0;
  int32_t last_chunk = 0;
};

// The placements that hold for passes of at most `max_rows` rows.
struct RowsBucket {
  int64_t max_rows = 0;
  // Rows of the micro-batches that a pass is cut into, in order; the last one repeats. Empty: one.
  std::vector<int64_t> chunks;
  // Chunks that are under way together, rounded up to those that join; 0: all.
  int64_t in_flight = 0;
  OrderRule order_rule = OrderRule::kStages;
  int32_t lag = 0;  // of OrderRule::kProducts
  // Instead of the rule: every stage of every layer and chunk once. A device's queue has its tasks
  // in this order; the input of a chunk comes before its first layer, the head after everything.
  std::vector<OrderEntry> order;
  std::vector<Placement> placements;
  std::optional<Prediction> predicted = {};
};

// What Plan::activations is: whether inputs of products are rounded to 8 bits where a device can.
inline std::string_view activations_name(bool int8) { return int8 ? "int8" : "f32"; }

// "wavefront", "products, 3 turns apart", "list".
std::string order_name(const RowsBucket& bucket);

struct Plan {
  uint64_t model_fingerprint = 0;
  std::vector<std::string> devices;  // device strings, as opened
  std::string activations = "f32";
  std::string kv_type = "f32";
  std::string objective;            // what it was planned for, for people; empty: not told
  std::string reason;               // why this plan, for people
  std::vector<RowsBucket> buckets;  // ascending max_rows

  // The bucket for a pass of `rows` rows; nullptr if none is large enough.
  const RowsBucket* bucket(int64_t rows) const;
};

// Everything on one device, for passes of up to `max_rows` rows.
Plan single_device_plan(const graph::Graph& graph, const std::string& device, int64_t max_rows,
                        const std::string& kv_type);

// Every stage of every layer placed exactly once, with cuts and shares that can be, on known
// devices, in ascending buckets, for this model, with types that exist, and queues that cannot wait
// for each other in a circle. kInvalidData naming the place.
Status check(const Plan& plan, const graph::Graph& graph);

// The name of a product by which placements know it: "q" of "blk.3.q".
std::string_view product_name(const graph::Graph& graph, graph::OpId op);

std::string to_json(const Plan& plan);
// Shape and types are checked here, meaning by check(). kInvalidData naming the field.
Result<Plan> from_json(std::string_view text);

}  // namespace troika::plan
