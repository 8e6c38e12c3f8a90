#include "troika/sim/pass_schedule.h"

#include <numeric>

#include "troika/plan/lower.h"

namespace troika::sim {

struct PassScheduler::State {
  const graph::Graph& graph;
  const cost::CostModel& cost;
  std::vector<device::DeviceInfo> infos;
  LoweredOptions options;
  plan::Plan plan;  // for the names of devices
};

PassScheduler::PassScheduler(const graph::Graph& graph, const cost::CostModel& cost,
                             std::vector<device::DeviceInfo> infos, LoweredOptions options)
    : state_(new State{graph, cost, std::move(infos), std::move(options), {}}) {
  for (const device::DeviceInfo& info : state_->infos) state_->plan.devices.push_back(info.name);
  state_->options.devices.resize(state_->infos.size());
  std::iota(state_->options.devices.begin(), state_->options.devices.end(), size_t{0});
}

PassScheduler::~PassScheduler() = default;

Status PassScheduler::build(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) {
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(state_->plan, bucket, state_->graph, rows,
                               state_->options.logit_rows, state_->infos));
  ASSIGN_OR_RETURN(out.schedule, schedule_from(list, state_->cost, state_->options));
  out.places.clear();
  for (const plan::Task& task : list.tasks) {
    const bool whole = task.block == plan::kWholePass;
    const int32_t chunk = whole ? 0 : list.cut->blocks[static_cast<size_t>(task.block)].chunk;
    out.places.push_back({task.stage, task.layer, chunk});
  }
  return {};
}

}  // namespace troika::sim
