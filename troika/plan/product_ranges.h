// The outputs and inputs of a product that each part of a cut gets: whole heads where its outputs
// are heads, else multiples of the devices' tiles and of the blocks in which weights are stored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/plan/shares.h"

namespace troika::plan {

// Keys that a query is taken to see, where what attention costs beside products matters.
inline constexpr int64_t kUsualDepth = 512;

// Borrows all that it is given; `devices` are the plan's, `infos` theirs.
class ProductRanges {
 public:
  ProductRanges(const graph::Graph& graph, const std::vector<std::string>& devices,
                std::span<const device::DeviceInfo> infos);

  // Inputs that a product takes as its device's slice of the attention or of the MLP.
  bool takes_slices(const graph::Op& op) const;
  // By part of the placement; some may be empty.
  std::vector<Range> outputs(const graph::Op& op, const Placement& placement) const;
  std::vector<Range> inputs(const graph::Op& op, const Placement& placement) const;
  // Inputs of a product are cut between the blocks in which its weight's rows are stored.
  static int64_t block_of(const graph::Op& product);

 private:
  // Heads that a product's outputs are.
  struct HeadUse {
    int64_t head_dim = 0;
    bool is_kv = false;
  };
  std::optional<HeadUse> head_use(graph::TensorId tensor) const;
  HeadSplit attention_heads(int32_t layer, std::span<const double> shares) const;
  // What an attention costs as a part of its queries and their output projection.
  double attention_part(graph::OpId attention) const;
  // The block of the products that take a tensor's columns as slices of their inputs: 1 if none
  // does.
  int64_t block_of_readers(graph::TensorId tensor) const;
  int64_t common_tile(const Placement& placement, int64_t device::DeviceInfo::*tile) const;

  const graph::Graph& graph_;
  const std::vector<std::string>& devices_;
  std::span<const device::DeviceInfo> infos_;
  std::vector<std::vector<graph::OpId>> readers_;  // by tensor
  std::map<int32_t, graph::OpId> attention_;       // by layer
};

}  // namespace troika::plan
