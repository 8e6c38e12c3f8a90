#include "troika/sim/pass_schedule.h"

#include <algorithm>
#include <numeric>

#include "troika/plan/lower.h"
#include "troika/sim/pass_state.h"

namespace troika::sim {

using graph::OpId;
using graph::OpKind;

PassScheduler::State::State(const graph::Graph& g, const cost::CostModel& c,
                            std::vector<device::DeviceInfo> i, LoweredOptions o)
    : graph(g), cost(c), infos(std::move(i)), options(std::move(o)) {
  for (const device::DeviceInfo& info : infos) plan.devices.push_back(info.name);
  ranges = std::make_unique<plan::ProductRanges>(graph, plan.devices, infos);
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    names.push_back(graph.ops[id].kind == OpKind::kMatMul
                        ? plan::product_name(graph, static_cast<OpId>(id))
                        : std::string_view());
  }
  turn_counts = plan::turn_counts(graph);
  by_stages = layout_of(graph, false);
  by_turns = layout_of(graph, true);
  for (std::optional<Layout>* const one : {&by_stages, &by_turns}) {
    if (!*one) continue;
    Layout& own = **one;
    own.cutter =
        std::make_unique<PassCutter>(graph, infos, plan.devices, *ranges, options, own.of_layer);
    own.grouper = std::make_unique<PassGrouper>(infos, own.positions, own.of_layer);
  }
  options.devices.resize(infos.size());
  std::iota(options.devices.begin(), options.devices.end(), size_t{0});
  set_chip(cost, options.devices, chip);
  for (const size_t device : options.devices) {
    facts.push_back(cost.run_facts(device));
    switches =
        switches || facts.back().datapath_switch_us > 0 || facts.back().weights_switch_us > 0;
  }
}

Status PassScheduler::State::by_lowering(const plan::RowsBucket& bucket, int64_t rows,
                                         PassSchedule& out) const {
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(plan, bucket, graph, rows, options.logit_rows, infos));
  ASSIGN_OR_RETURN(out.schedule, schedule_from(list, cost, options));
  for (const plan::Task& task : list.tasks) {
    const bool whole = task.block == plan::kWholePass;
    const int32_t chunk = whole ? 0 : list.cut->blocks[static_cast<size_t>(task.block)].chunk;
    out.places.push_back({task.stage, task.layer, chunk});
  }
  return {};
}

PassScheduler::PassScheduler(const graph::Graph& graph, const cost::CostModel& cost,
                             std::vector<device::DeviceInfo> infos, LoweredOptions options)
    : state_(std::make_unique<State>(graph, cost, std::move(infos), std::move(options))) {}

PassScheduler::~PassScheduler() = default;

Status PassScheduler::build(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) {
  state_->lowered = true;
  out.places.clear();
  // Values of joined chunks go from one partition of the rows to another.
  const bool joins = std::any_of(bucket.placements.begin(), bucket.placements.end(),
                                 [](const plan::Placement& one) { return one.join_chunks > 1; });
  if (joins) return state_->by_lowering(bucket, rows, out);
  RETURN_IF_ERROR(state_->cut_pass(bucket, rows));
  if (state_->layout == nullptr || !state_->layout->cutter->sound()) {
    return state_->by_lowering(bucket, rows, out);
  }
  RETURN_IF_ERROR(state_->layout->grouper->run(state_->instances, state_->blocks,
                                               std::min(state_->options.logit_rows, rows)));
  state_->lowered = false;
  return state_->fill(rows, out);
}

}  // namespace troika::sim
