// What makes a Plan one that can be run.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "troika/plan/plan.h"
#include "troika/plan/steps.h"

namespace troika::plan {
namespace {

using graph::Stage;

constexpr double kLeastShare = 1e-6;
constexpr double kMostShare = 1e6;
constexpr double kMostDelayUs = 1e6;
// Chunks times layers, so that no plan takes long to be read; lower() bounds a device's tasks.
constexpr int64_t kMaxChunkLayers = 4096;

bool is_outer(Stage stage) { return stage == Stage::kInput || stage == Stage::kHead; }

std::string place_name(const Placement& placement, int32_t layer) {
  std::string name(to_string(placement.stage));
  if (!placement.op.empty()) name += " " + placement.op;
  if (layer >= 0) name += fmt::format(" layer {}", layer);
  if (placement.chunk >= 0) name += fmt::format(" chunk {}", placement.chunk);
  return name;
}

// Checks the placements of one bucket.
class BucketCheck {
 public:
  BucketCheck(const Plan& plan, const graph::Graph& graph, const RowsBucket& bucket)
      : plan_(plan), graph_(graph), bucket_(bucket) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const graph::Op& op = graph.ops[i];
      if (op.kind != graph::OpKind::kMatMul) continue;
      products_.insert({op.stage, std::string(product_name(graph, static_cast<graph::OpId>(i)))});
    }
  }

  Status run() {
    RETURN_IF_ERROR(check_size());
    for (const Placement& placement : bucket_.placements) {
      RETURN_IF_ERROR(check_cut(placement));
      RETURN_IF_ERROR(check_parts(placement));
      RETURN_IF_ERROR(check_layers(placement));
      RETURN_IF_ERROR(check_join(placement));
    }
    RETURN_IF_ERROR(check_complete());
    return check_order();
  }

 private:
  // Sizes of chunks are checked before.
  Status check_size() const {
    if (bucket_.chunks.empty()) return {};
    const auto chunks =
        static_cast<int64_t>(bucket_.chunks.size()) + bucket_.max_rows / bucket_.chunks.back();
    if (chunks * graph_.n_layers <= kMaxChunkLayers) return {};
    return make_error(ErrorCode::kInvalidData,
                      "plan: bucket of {} rows: its chunks go through more than {} layers in all: "
                      "use larger ones",
                      bucket_.max_rows, kMaxChunkLayers);
  }

  tl::unexpected<Error> wrong(const Placement& placement, const std::string& what) const {
    return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {}: {}", bucket_.max_rows,
                      place_name(placement, placement.first_layer), what);
  }

  Status check_cut(const Placement& placement) const {
    const Cut cut = placement.cut;
    const bool fits = [&] {
      switch (placement.stage) {
        case Stage::kInput:
          return cut == Cut::kNone || cut == Cut::kActivationCentric;
        case Stage::kAttention:
          return cut != Cut::kK;
        case Stage::kHead:
          return cut != Cut::kActivationCentric;
        case Stage::kG1:
        case Stage::kG2:
          return true;
      }
      return false;
    }();
    if (!fits) {
      return wrong(placement, fmt::format("this stage cannot be cut {}", to_string(cut)));
    }
    if (cut == Cut::kNone && placement.parts.size() != 1) {
      return wrong(placement, fmt::format("cut none has one part, not {}", placement.parts.size()));
    }
    if (!placement.op.empty() && !products_.contains({placement.stage, placement.op})) {
      return wrong(placement, "this stage has no such product");
    }
    return {};
  }

  Status check_parts(const Placement& placement) const {
    if (placement.parts.empty() || placement.parts.size() > kMaxParts) {
      return wrong(placement,
                   fmt::format("{} parts, not 1 to {}", placement.parts.size(), kMaxParts));
    }
    std::set<std::string_view> seen;
    for (const Part& part : placement.parts) {
      if (std::find(plan_.devices.begin(), plan_.devices.end(), part.device) ==
          plan_.devices.end()) {
        return wrong(placement,
                     fmt::format("device \"{}\" is not among the plan's devices", part.device));
      }
      if (!seen.insert(part.device).second) {
        return wrong(placement, fmt::format("device \"{}\" has two parts", part.device));
      }
      if (!(part.share >= kLeastShare && part.share <= kMostShare)) {
        return wrong(placement, fmt::format("share {} of device \"{}\" is not from {} to {}",
                                            part.share, part.device, kLeastShare, kMostShare));
      }
    }
    if (!(placement.delay_us >= 0 && placement.delay_us <= kMostDelayUs)) {
      return wrong(placement, fmt::format("a delay of {} us is not from 0 to {}",
                                          placement.delay_us, kMostDelayUs));
    }
    if (placement.chunk < -1 || placement.chunk >= static_cast<int32_t>(kMaxChunks)) {
      return wrong(placement, fmt::format("chunk is not from -1 to {}", kMaxChunks - 1));
    }
    return {};
  }

  Status check_join(const Placement& placement) {
    const int32_t count = placement.join_chunks;
    if (count < 1 || count > static_cast<int32_t>(kMaxChunks)) {
      return wrong(placement, fmt::format("join_chunks is {}, not 1 to {}", count, kMaxChunks));
    }
    if (count == 1) return {};
    if (bucket_.chunks.empty()) return wrong(placement, "there are no chunks to join");
    if (placement.stage == Stage::kHead) {
      return wrong(placement, "this stage has no chunks that could join");
    }
    if (!placement.op.empty() || placement.chunk >= 0) {
      return wrong(placement, "only a whole stage can join chunks, all of them");
    }
    if (joins_ > 1 && joins_ != count) {
      return wrong(placement,
                   fmt::format("join_chunks is {}, but {} in another placement", count, joins_));
    }
    joins_ = count;
    return {};
  }

  // What one task computes has one placement in all its chunks.
  Status check_joined_chunks(const JoinedStages& joined) const {
    for (const Placement& placement : bucket_.placements) {
      if (placement.chunk < 0 || !joined.touch(placement)) continue;
      return wrong(placement, "chunks join in this stage: none can have a placement of its own");
    }
    return {};
  }

  Status check_order() const {
    const JoinedStages joined(bucket_);
    RETURN_IF_ERROR(check_joined_chunks(joined));
    const bool by_products = bucket_.order.empty() && bucket_.order_rule == OrderRule::kProducts;
    if (bucket_.lag < 0 || bucket_.lag > (by_products ? kMaxLag : 0)) {
      return make_error(ErrorCode::kInvalidData,
                        "plan: bucket of {} rows: lag is {}, not 0 to {} turns of order products, "
                        "which alone has one",
                        bucket_.max_rows, bucket_.lag, kMaxLag);
    }
    // The rules give orders that can be kept.
    if (bucket_.order.empty()) return {};
    const auto layers = static_cast<int32_t>(graph_.n_layers);
    const int32_t chunks = chunk_count(bucket_, bucket_.max_rows);
    RETURN_IF_ERROR(check_entries(bucket_, layers, chunks));
    RETURN_IF_ERROR(order_steps(plan_, bucket_, layers, chunks, {}, {}));
    return {};
  }

  // The first place that is named twice is an error: the time stays bounded.
  Status cover(const Placement& placement, int32_t layer) {
    if (covered_.insert({placement.stage, placement.op, placement.chunk, layer}).second) return {};
    return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {} is placed twice",
                      bucket_.max_rows, place_name(placement, layer));
  }

  Status check_layers(const Placement& placement) {
    if (is_outer(placement.stage)) {
      if (placement.first_layer != -1 || placement.last_layer != -1) {
        return wrong(placement, "this stage has no layers");
      }
      return cover(placement, -1);
    }
    if (placement.first_layer < 0 || placement.last_layer < placement.first_layer ||
        placement.last_layer >= graph_.n_layers) {
      return wrong(placement,
                   fmt::format("layers {} to {} are not in 0 to {}", placement.first_layer,
                               placement.last_layer, graph_.n_layers - 1));
    }
    for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
      RETURN_IF_ERROR(cover(placement, layer));
    }
    return {};
  }

  Status check_complete() const {
    const auto once = [&](Stage stage, int32_t layer) -> Status {
      if (covered_.contains({stage, std::string(), -1, layer})) return {};
      Placement missing;
      missing.stage = stage;
      return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {} is not placed",
                        bucket_.max_rows, place_name(missing, layer));
    };
    for (const Stage stage : {Stage::kInput, Stage::kHead}) RETURN_IF_ERROR(once(stage, -1));
    for (int32_t layer = 0; layer < graph_.n_layers; ++layer) {
      for (const Stage stage : {Stage::kG1, Stage::kAttention, Stage::kG2}) {
        RETURN_IF_ERROR(once(stage, layer));
      }
    }
    return {};
  }

  const Plan& plan_;
  const graph::Graph& graph_;
  const RowsBucket& bucket_;
  int32_t joins_ = 1;
  std::set<std::pair<Stage, std::string>> products_;
  std::set<std::tuple<Stage, std::string, int32_t, int32_t>> covered_;  // stage, op, chunk, layer
};

Status check_header(const Plan& plan, const graph::Graph& graph) {
  if (plan.model_fingerprint != graph.model->fingerprint()) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: made for model {:016x}, but this one is {:016x}",
                      plan.model_fingerprint, graph.model->fingerprint());
  }
  if (plan.activations != activations_name(false) && plan.activations != activations_name(true)) {
    return make_error(ErrorCode::kInvalidData, "plan: activations are \"{}\", not f32 or int8",
                      plan.activations);
  }
  if (plan.kv_type != "f32" && plan.kv_type != "f16") {
    return make_error(ErrorCode::kInvalidData, "plan: kv_type is \"{}\", not f32 or f16",
                      plan.kv_type);
  }
  if (plan.devices.size() > kMaxPlanDevices) {
    return make_error(ErrorCode::kInvalidData, "plan: {} devices, {} at most are allowed",
                      plan.devices.size(), kMaxPlanDevices);
  }
  if (plan.devices.empty()) return make_error(ErrorCode::kInvalidData, "plan: names no device");
  for (auto device = plan.devices.begin(); device != plan.devices.end(); ++device) {
    if (std::find(plan.devices.begin(), device, *device) != device) {
      return make_error(ErrorCode::kInvalidData, "plan: names device \"{}\" twice", *device);
    }
  }
  if (plan.buckets.empty()) return make_error(ErrorCode::kInvalidData, "plan: has no buckets");
  size_t placements = 0;
  size_t entries = 0;
  for (const RowsBucket& bucket : plan.buckets) {
    placements += bucket.placements.size();
    entries += bucket.order.size();
  }
  if (placements > kMaxPlacements) {
    return make_error(ErrorCode::kInvalidData, "plan: {} placements, {} at most are allowed",
                      placements, kMaxPlacements);
  }
  if (entries > kMaxOrderEntries) {
    return make_error(ErrorCode::kInvalidData, "plan: {} entries of orders, {} at most are allowed",
                      entries, kMaxOrderEntries);
  }
  return {};
}

Status check_rows(const RowsBucket& bucket, int64_t last) {
  if (bucket.max_rows <= last) {
    return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows comes after one of {}",
                      bucket.max_rows, last);
  }
  if (bucket.max_rows > kMaxPlanRows) {
    return make_error(ErrorCode::kInvalidData, "plan: a bucket of {} rows: {} at most are allowed",
                      bucket.max_rows, kMaxPlanRows);
  }
  if (bucket.in_flight < 0) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: bucket of {} rows: in_flight is {}, not 0 or more", bucket.max_rows,
                      bucket.in_flight);
  }
  for (size_t i = 0; i < bucket.chunks.size(); ++i) {
    if (bucket.chunks[i] > 0 && bucket.chunks[i] <= kMaxPlanRows) continue;
    return make_error(ErrorCode::kInvalidData,
                      "plan: bucket of {} rows: chunks[{}] is {}, not 1 to {} rows",
                      bucket.max_rows, i, bucket.chunks[i], kMaxPlanRows);
  }
  // The last size repeats: too small a one would make too many.
  const bool few = bucket.chunks.size() <= kMaxChunks &&
                   (bucket.chunks.empty() ||
                    bucket.max_rows / bucket.chunks.back() <= static_cast<int64_t>(kMaxChunks));
  if (!few) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: bucket of {} rows: more than {} chunks, the last size, {}, repeating: "
                      "use larger ones",
                      bucket.max_rows, kMaxChunks, bucket.chunks.back());
  }
  return {};
}

}  // namespace

Status check(const Plan& plan, const graph::Graph& graph) {
  RETURN_IF_ERROR(check_header(plan, graph));
  int64_t last = 0;
  for (const RowsBucket& bucket : plan.buckets) {
    RETURN_IF_ERROR(check_rows(bucket, last));
    last = bucket.max_rows;
    RETURN_IF_ERROR(BucketCheck(plan, graph, bucket).run());
  }
  return {};
}

}  // namespace troika::plan
