// Which placement of a bucket holds for an operator in a chunk.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "troika/graph/graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// Borrows all three. The plan must have passed check().
class PlacementTable {
 public:
  PlacementTable(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph);

  // The one with the highest rank().
  const Placement& of(graph::OpId op, int32_t chunk) const;
  // The part's index into Plan::devices.
  int32_t device(const Part& part) const;

 private:
  const Plan& plan_;
  const graph::Graph& graph_;
  std::map<std::pair<graph::Stage, int32_t>, std::vector<const Placement*>> by_place_;
};

}  // namespace troika::plan
