// What one bucket of a plan takes on the devices of a cost model.
#include <set>
#include <tuple>

#include "troika/plan/lower.h"
#include "troika/planner/model_plan.h"
#include "troika/planner/pass_costs.h"
#include "troika/sim/operator_cost.h"

namespace troika::planner {
namespace {

// A plan of this bucket on all devices of the cost model.
plan::Plan plan_of(const graph::Graph& graph, const std::vector<device::DeviceInfo>& infos,
                   const plan::RowsBucket& bucket) {
  plan::Plan plan;
  plan.model_fingerprint = graph.model->fingerprint();
  for (const device::DeviceInfo& info : infos) plan.devices.push_back(info.name);
  plan.buckets = {bucket};
  return plan;
}

// Slices of weights by device; each once, however many tasks read it. Bytes as stored by a request.
std::vector<int64_t> weight_bytes(const plan::TaskList& list, size_t n_devices,
                                  const sim::LoweredOptions& options) {
  std::vector<std::set<graph::WeightSlice>> slices(n_devices);
  std::vector<int64_t> bytes(n_devices, 0);
  for (const plan::Task& task : list.tasks) {
    const auto device = static_cast<size_t>(task.device);
    for (const graph::OpId id : task.program.ops) {
      const graph::Op& op = list.cut->graph.op(id);
      if (op.kind != graph::OpKind::kMatMul) continue;
      const graph::WeightSlice slice = graph::weight_slice(list.cut->graph, op);
      if (!slices[device].insert(slice).second) continue;
      const double bits = sim::asked_bits(options, op.stage);
      bytes[device] += bits > 0 ? static_cast<int64_t>(bits / 8 * static_cast<double>(slice.n) *
                                                       static_cast<double>(slice.k))
                                : graph::weight_bytes(list.cut->graph, id);
    }
  }
  return bytes;
}

// One graph for each shape of weight slice that a static device computes, one after the other.
double build_us(const plan::TaskList& list, const cost::CostModel& cost) {
  std::set<std::tuple<int32_t, int64_t, int64_t, int64_t>> graphs;
  double us = 0;
  for (const plan::Task& task : list.tasks) {
    for (const graph::OpId id : task.program.ops) {
      const graph::Op& op = list.cut->graph.op(id);
      if (op.kind != graph::OpKind::kMatMul) continue;
      const graph::WeightSlice slice = graph::weight_slice(list.cut->graph, op);
      const int64_t rows = task.program.max_rows;
      if (!graphs.emplace(task.device, rows, slice.n, slice.k).second) continue;
      us += cost.build_us(static_cast<size_t>(task.device), rows);
    }
  }
  return us;
}

void vary(const sim::Schedule& schedule, sim::Simulator& simulator, const PassRequest& request,
          Forecast& forecast) {
  forecast.mean_us = forecast.p90_us = forecast.us;
  if (request.variation.deviation <= 0 || request.variation.seeds < 1) return;
  std::vector<double> times;
  for (int32_t i = 0; i < request.variation.seeds; ++i) {
    times.push_back(forecast.fixed_us + simulator.run(schedule, variation_noise(request, i)));
  }
  const Forecast varied = mean_and_p90(times);
  forecast.mean_us = varied.mean_us;
  forecast.p90_us = varied.p90_us;
}

}  // namespace

Result<Forecast> evaluate(const graph::Graph& graph, const cost::CostModel& cost,
                          const plan::RowsBucket& bucket, const PassRequest& request,
                          bool with_trace) {
  if (request.rows < 1 || request.rows > bucket.max_rows) {
    return make_error(ErrorCode::kInvalidArgument, "a pass of {} rows by a bucket of {}",
                      request.rows, bucket.max_rows);
  }
  const ChainCost chain(cost, request.integer_activations);
  const std::vector<device::DeviceInfo> infos = infos_for(cost, request);
  const plan::Plan plan = plan_of(graph, infos, bucket);
  RETURN_IF_ERROR(plan::check(plan, graph));
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(plan, bucket, graph, request.rows,
                               std::max<int64_t>(1, request.logit_rows), infos));
  const sim::LoweredOptions options = lowered_options(request, infos);
  ASSIGN_OR_RETURN(const sim::Schedule schedule, sim::schedule_from(list, chain, options));
  sim::Simulator simulator;
  Forecast forecast;
  if (request.build_graphs) forecast.build_us = build_us(list, cost);
  forecast.fixed_us = forecast.build_us + cost.chip_facts().pass_overhead_us;
  forecast.us = forecast.fixed_us + simulator.run(schedule);
  forecast.busy_us.assign(simulator.busy_us().begin(), simulator.busy_us().end());
  forecast.weight_bytes = weight_bytes(list, infos.size(), options);
  forecast.energy_mj.assign(simulator.energy_mj().begin(), simulator.energy_mj().end());
  forecast.idle_mj = forecast.us * cost.chip_facts().idle_w * 1e-3;
  forecast.tasks = static_cast<int64_t>(list.tasks.size());
  if (with_trace) forecast.trace = sim::trace_of(list, simulator, plan.devices, options);
  vary(schedule, simulator, request, forecast);
  return forecast;
}

}  // namespace troika::planner
