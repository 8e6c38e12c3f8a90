// How one product is best divided among the devices of a chip: every cut, any number of devices,
// exactly. Costs come from a CostModel; docs/planning.md has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/cost/cost_model.h"
#include "troika/planner/strategy.h"

namespace troika::planner {

// More rows than any pass has that is planned as one product.
inline constexpr int64_t kMaxTokens = 65536;
inline constexpr int64_t kMaxWeightExtent = int64_t{1} << 21;

enum class OperatorCut { kNone, kPadding, kWeightCentric, kHybrid, kActivationCentric, kK };
// "none", "padding", "weight-centric", "hybrid", "activation-centric", "k-cut"
std::string_view to_string(OperatorCut cut);

// What one device computes.
struct Slice {
  size_t device = 0;  // of the cost model
  double share = 0;   // of what is cut; 1 if nothing is
  int64_t rows = 0;   // without padding
  int64_t outputs = 0;
  int64_t inputs = 0;
  double us = 0;
  bool integer = false;
};

struct Division {
  OperatorCut cut = OperatorCut::kNone;
  std::vector<Slice> slices;  // in the order of the devices' names
  double slowest_us = 0;      // of the slices
  double join_us = 0;         // to join them, or to hand the result back
  double us() const { return slowest_us + join_us; }
};

struct OperatorPlan {
  Division chosen;
  // Where the strategy has a grid: the best of its cuts with shares as fine as the tiles.
  std::optional<Division> continuous;
  std::vector<Division> alternatives;  // of each kind and device the best, fastest first
  // At the speeds that the devices reach with the whole product, all of them at work: what
  // co-execution could come to without joins and padding.
  double roofline_us = 0;
  std::string reason;  // one sentence
};

// The product's `m` is the number of tokens; `weight_stationary` is decided here. kInvalidArgument
// for extents out of range or a device that does not exist; kUnsupported if no device can have it.
Result<OperatorPlan> plan_operator(const cost::CostModel& cost, const cost::Product& product,
                                   const Strategy& strategy);

}  // namespace troika::planner
