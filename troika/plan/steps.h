// The steps of a pass, a stage of a layer for one chunk or for several that join, in the order in
// which they are queued.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "troika/base/result.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// Which stages' chunks are computed together, and how many.
class JoinedStages {
 public:
  explicit JoinedStages(const RowsBucket& bucket);

  // Chunks of a group; 1: no stage joins any.
  int32_t group_size() const { return group_size_; }
  bool contains(graph::Stage stage, int32_t layer) const {
    return stages_.contains({stage, layer});
  }
  // Of the layers for which a placement holds.
  bool touch(const Placement& placement) const;
  bool cover(const Placement& placement) const;

 private:
  int32_t group_size_ = 1;
  std::set<std::pair<graph::Stage, int32_t>> stages_;
};

struct Step {
  graph::Stage stage = graph::Stage::kInput;
  int32_t layer = -1;
  int32_t chunk = 0;   // the first
  int32_t chunks = 1;  // more than one: joined
  int32_t turn = -1;   // only this one of its turns(); -1: all of them
};

// Operators of a stage in runs of products and of others: blocks of the same chunk take turns after
// each, so that a device computes one block's products while another has those of the next.
std::vector<std::span<const graph::OpId>> turns(const graph::Graph& graph,
                                                std::span<const graph::OpId> stage);

// How many turns the stages of layers take: G1, A and G2 of the first, of the second and so on.
std::vector<int32_t> turn_counts(const graph::Graph& graph);

// Rows of the chunks of a pass of `rows` rows, and how many there are.
std::vector<int64_t> chunk_sizes(const RowsBucket& bucket, int64_t rows);
int32_t chunk_count(const RowsBucket& bucket, int64_t rows);

// Whether the entries of a planned order name stages, layers and chunks that there are.
Status check_entries(const RowsBucket& bucket, int32_t n_layers, int32_t n_chunks);

// All steps but the head, for the first `n_chunks` chunks, so that each comes after what it needs
// and every device gets its own in the planned order. `apart` says of which groups the chunks
// cannot join (empty: of none). kInvalidData naming the entry if the planned order lacks a step,
// has one twice, or cannot be kept: when data edges and queues together form a circle. Devices meet
// in the steps that they share, so these count as one. `turns` are turn_counts(), which only the
// order by products asks for.
Result<std::vector<Step>> order_steps(const Plan& plan, const RowsBucket& bucket, int32_t n_layers,
                                      int32_t n_chunks, const std::vector<bool>& apart,
                                      std::span<const int32_t> turns);

}  // namespace troika::plan
