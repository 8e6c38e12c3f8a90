// What a PassScheduler holds: of its graph and chip, and of the bucket at hand. How a pass is cut
// lies in pass_stages.cpp, what its tasks need in pass_work.cpp, what can be asked of it in
// pass_facts.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "troika/plan/rows.h"
#include "troika/plan/steps.h"
#include "troika/sim/operator_cost.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/pass_layout.h"
#include "troika/sim/pass_schedule.h"
#include "troika/sim/pass_tasks.h"

namespace troika::sim {

struct ProductKey {
  int32_t device = 0;
  int64_t rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  double bits = 0;
  bool input_stationary = false;
  auto operator<=>(const ProductKey&) const = default;
};

// Blocks that are cut alike: the stages of one of them.
struct BlockKind {
  int32_t chunk = 0;
  std::vector<size_t> owners;  // parts that own it, by placement; of those cut along the rows
  bool one_row = false;
  std::vector<std::pair<const CutStage*, int32_t>> by_position;  // and the shift
  PassCutter::Memory memory;
};

// Objects that are used again and again, each with the memory that it got before.
template <class T>
class Pool {
 public:
  void reset() { used_ = 0; }
  T& next() {
    if (used_ == all_.size()) all_.push_back(std::make_unique<T>());
    return *all_[used_++];
  }
  void give_back() { --used_; }
  size_t size() const { return used_; }
  T& operator[](size_t i) { return *all_[i]; }

 private:
  std::vector<std::unique_ptr<T>> all_;
  size_t used_ = 0;
};

struct PassScheduler::State {
  State(const graph::Graph& g, const cost::CostModel& c, std::vector<device::DeviceInfo> i,
        LoweredOptions o);

  const plan::Placement* placement(const plan::RowsBucket& bucket, graph::OpId id,
                                   int32_t chunk) const;
  Decision decide(const plan::RowsBucket& bucket, graph::OpId id, const BlockKind& kind) const;
  BlockKind& kind_of(const plan::RowsBucket& bucket, const plan::Block& block, plan::Range chunk);
  void cut_block(const plan::RowsBucket& bucket, BlockKind& kind);
  Status order(const plan::RowsBucket& bucket, int32_t chunks, const std::vector<bool>& apart);
  Status cut_pass(const plan::RowsBucket& bucket, int64_t rows);
  struct StageCost;
  Result<const StageCost*> cost_of(const CutInstance& instance, int64_t rows);
  Status add_work(int64_t rows);
  double switch_to(const CutInstance& instance, const CutOp& op, int32_t path);
  TaskPlace place_of(const TaskGroup& task) const;
  Status fill(int64_t rows, PassSchedule& out);
  std::optional<cost::Estimate> estimate(const CutOp& op, const TaskGroup& task, bool head,
                                         int64_t rows);
  Status by_lowering(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) const;

  const graph::Graph& graph;
  const cost::CostModel& cost;
  std::vector<device::DeviceInfo> infos;
  LoweredOptions options;
  plan::Plan plan;  // for the names of devices
  std::unique_ptr<plan::ProductRanges> ranges;
  std::optional<Layout> by_stages;
  std::optional<Layout> by_turns;
  const Layout* layout = nullptr;       // of the bucket at hand
  std::vector<int32_t> turn_counts;     // see plan::turn_counts()
  std::vector<std::string_view> names;  // by operator; empty unless a product
  Schedule chip;                        // without tasks
  std::vector<cost::RunFacts> facts;
  bool switches = false;  // some device takes time to go from one product to another

  // Of the bucket at hand.
  bool lowered = true;
  struct OrderKey {
    plan::OrderRule rule;
    int64_t in_flight;
    int32_t lag;
    int32_t chunks;
    bool operator==(const OrderKey&) const = default;
  };
  std::optional<OrderKey> ordered;  // what `steps` are of
  std::vector<plan::Step> steps;
  std::vector<plan::Block> blocks;
  Pool<BlockKind> kinds;
  Pool<CutStage> stages;                     // numbered from 1; the head is number 0
  std::vector<PassCutter::Memory> memories;  // by block
  std::vector<bool> border;                  // by layer: other placements hold from here on
  CutStage head;
  std::vector<CutInstance> instances;
  std::map<ProductKey, std::optional<cost::Estimate>> products;
  // Of the operators of a stage on the rows of a block.
  struct StageCost {
    bool known = false;
    std::vector<std::pair<Needed, int32_t>> work;  // and the path of a product
  };
  std::vector<StageCost> stage_costs;  // by stage and block
  std::vector<Needed> needed;          // by task
  std::vector<double> switches_us;     // by task
  std::vector<Place> last_product;     // by device
};

}  // namespace troika::sim
