// Cuts one graph, step by step; see cut_graph.h. What is cut how lies in cut_*.cpp, by subject.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/cut_graph.h"
#include "troika/plan/placement_table.h"
#include "troika/plan/product_ranges.h"
#include "troika/plan/shares.h"
#include "troika/plan/slices.h"
#include "troika/plan/steps.h"

namespace troika::plan {

// Used once. Borrows all that it is given.
class Cutter {
 public:
  Cutter(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
         int64_t max_logit_rows, std::span<const device::DeviceInfo> infos, CutGraph& out);

  // `out` has its blocks already.
  void run(const std::vector<Step>& steps);

 private:
  using OpId = graph::OpId;
  using TensorId = graph::TensorId;

  void run_head();
  void run_op(OpId id, int32_t block, int32_t chunk);

  // The device that computes a block whole; none if the placement cuts it.
  std::optional<int32_t> sole_owner(const Placement& placement, int32_t block) const;
  std::vector<SliceSpec> to_specs(const Placement& placement,
                                  const std::vector<Range>& ranges) const;

  // Cheap operators of whole rows (cut_light.cpp). Without an owner they are computed where they
  // are needed.
  void light(OpId id, int32_t block, int32_t device, bool for_all);
  void gather_rows(OpId id, int32_t device, bool for_all);
  TensorId light_output(TensorId tensor, int32_t block, int32_t device, bool for_all);
  bool may_recompute(OpId id, int32_t block, int32_t device, int before);
  void want(TensorId tensor, int32_t block, int32_t device);
  TensorId read(TensorId tensor, int32_t block, int32_t device, Range columns);
  TensorId read_all(TensorId tensor, int32_t block, int32_t device);

  // Products (cut_products.cpp).
  void product(OpId id, int32_t block, const Placement& placement);
  bool stationary(const Placement& placement, int32_t device) const;
  void whole_product(const graph::Op& source, int32_t block, int32_t device, bool input_stationary);
  void output_slices(const graph::Op& source, int32_t block, const Placement& placement);
  void slice_product(const graph::Op& source, int32_t block, const Placement& placement);
  void partial_products(const graph::Op& source, int32_t block, const Placement& placement,
                        const std::vector<SliceSpec>& specs);

  // What is computed where its input is, and attention (cut_heads.cpp).
  std::vector<SliceSpec> places(TensorId tensor, int32_t block, const Placement& placement);
  void follow(OpId id, int32_t block, const Placement& placement);
  void kv_write(OpId id, int32_t block, const Placement& placement);
  void attention(OpId id, int32_t block, const Placement& placement);

  const Plan& plan_;
  const graph::Graph& graph_;
  std::span<const device::DeviceInfo> infos_;
  PlacementTable table_;
  ProductRanges ranges_;
  Slices slices_;
  CutGraph& out_;
  std::map<std::pair<graph::Stage, int32_t>, std::vector<OpId>> stages_;  // by stage and layer
  // Blocks and rows of chunks, and of chunks that join: by the first one and how many.
  struct Unit {
    std::vector<int32_t> blocks;
    Range rows;
  };
  std::map<std::pair<int32_t, int32_t>, Unit> units_;
};

}  // namespace troika::plan
