// What one bucket of a plan takes on the devices of a cost model.
#include <algorithm>
#include <set>
#include <tuple>

#include "troika/plan/lower.h"
#include "troika/planner/model_plan.h"
#include "troika/planner/pass_costs.h"
#include "troika/sim/operator_cost.h"
#include "troika/sim/pass_schedule.h"
#include "troika/sim/roofline_run.h"

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

void vary(const sim::Schedule& schedule, const PassRequest& request, Forecast& forecast) {
  forecast.mean_us = forecast.p90_us = forecast.us;
  if (!request.variation.any()) return;
  sim::Simulator simulator;
  std::vector<double> times;
  for (int32_t i = 0; i < request.variation.seeds; ++i) {
    times.push_back(forecast.fixed_us + simulator.run(schedule, variation_noise(request, i)));
  }
  const Forecast varied = mean_and_p90(times);
  forecast.mean_us = varied.mean_us;
  forecast.p90_us = varied.p90_us;
}

// Loads come at any moment of their periods: the mean over some of them.
void run_beside_loads(sim::Schedule& schedule, const PassRequest& request,
                      sim::Simulator& simulator, Forecast& forecast) {
  constexpr int kMoments = 8;
  schedule.loads = request.loads;
  double us = 0;
  std::vector<double> busy_us(schedule.n_devices, 0);
  std::vector<double> energy_mj(schedule.n_devices, 0);
  std::vector<int64_t> due(schedule.loads.size(), 0);
  std::vector<int64_t> done(schedule.loads.size(), 0);
  for (int moment = 0; moment < kMoments; ++moment) {
    for (sim::Load& load : schedule.loads) load.first_us = load.period_us * moment / kMoments;
    us += simulator.run(schedule) / kMoments;
    for (size_t d = 0; d < schedule.n_devices; ++d) {
      busy_us[d] += simulator.busy_us()[d] / kMoments;
      energy_mj[d] += simulator.energy_mj()[d] / kMoments;
    }
    for (size_t i = 0; i < schedule.loads.size(); ++i) {
      due[i] += simulator.loads()[i].due;
      done[i] += simulator.loads()[i].done;
    }
  }
  forecast.us = forecast.fixed_us + us;
  forecast.busy_us = std::move(busy_us);
  forecast.energy_mj = std::move(energy_mj);
  forecast.idle_mj = forecast.us * schedule.idle_w * 1e-3;
  for (size_t i = 0; i < due.size(); ++i) {
    forecast.loads_done.push_back(
        due[i] > 0 ? static_cast<double>(done[i]) / static_cast<double>(due[i]) : 1);
  }
}

// `run` is a Simulator or a sibling.
template <class Run>
void run_pass(const sim::Schedule& schedule, Run& run, Forecast& forecast) {
  forecast.us = forecast.fixed_us + run.run(schedule);
  forecast.busy_us.assign(run.busy_us().begin(), run.busy_us().end());
  forecast.energy_mj.assign(run.energy_mj().begin(), run.energy_mj().end());
  forecast.idle_mj = forecast.us * schedule.idle_w * 1e-3;
}

// All that a schedule tells: times, energy, and what variation does to them.
Status run_schedule(sim::Schedule& schedule, const PassRequest& request, sim::Simulator& simulator,
                    sim::RooflineRun& roofline, Forecast& forecast) {
  if (request.turbo_mj) schedule.turbo_mj = *request.turbo_mj;
  forecast.tasks = static_cast<int64_t>(schedule.tasks.size());
  if (request.fidelity == Fidelity::kRoofline) {
    run_pass(schedule, roofline, forecast);
  } else if (!request.loads.empty()) {
    for (const sim::Load& load : request.loads) {
      if (load.device >= 0 && static_cast<size_t>(load.device) < schedule.n_devices) continue;
      return make_error(ErrorCode::kInvalidArgument, "a load on device {} of {}", load.device,
                        schedule.n_devices);
    }
    run_beside_loads(schedule, request, simulator, forecast);
  } else {
    run_pass(schedule, simulator, forecast);
  }
  vary(schedule, request, forecast);
  return {};
}

// Without lowering the bucket; false if that has to be.
Result<bool> evaluate_directly(const graph::Graph& graph, const cost::CostModel& chain,
                               const plan::RowsBucket& bucket, const PassRequest& request,
                               const std::vector<device::DeviceInfo>& infos, bool with_trace,
                               Forecast& forecast) {
  sim::PassScheduler scheduler(graph, chain, infos, lowered_options(request, infos));
  sim::PassSchedule pass;
  RETURN_IF_ERROR(scheduler.build(bucket, request.rows, pass));
  const std::vector<double> bytes = scheduler.weight_bytes();
  if (bytes.empty()) return false;
  sim::Simulator simulator;
  sim::RooflineRun roofline;
  RETURN_IF_ERROR(run_schedule(pass.schedule, request, simulator, roofline, forecast));
  if (with_trace) {
    scheduler.add_places(pass);
    std::vector<std::string> names;
    for (const device::DeviceInfo& info : infos) names.push_back(info.name);
    const bool coarse = request.fidelity == Fidelity::kRoofline;
    forecast.trace = sim::trace_of(pass, scheduler.task_facts(request.rows),
                                   coarse ? roofline.times() : simulator.times(), names);
  }
  for (const double one : bytes) forecast.weight_bytes.push_back(static_cast<int64_t>(one));
  return true;
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
  Forecast forecast;
  forecast.fixed_us = cost.chip_facts().pass_overhead_us;
  const bool joins = std::any_of(bucket.placements.begin(), bucket.placements.end(),
                                 [](const plan::Placement& one) { return one.join_chunks > 1; });
  if (!request.build_graphs && !joins) {
    ASSIGN_OR_RETURN(const bool done,
                     evaluate_directly(graph, chain, bucket, request, infos, with_trace, forecast));
    if (done) return forecast;
  }
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(plan, bucket, graph, request.rows,
                               std::max<int64_t>(1, request.logit_rows), infos));
  const sim::LoweredOptions options = lowered_options(request, infos);
  ASSIGN_OR_RETURN(sim::Schedule schedule, sim::schedule_from(list, chain, options));
  if (request.build_graphs) forecast.build_us = build_us(list, cost);
  forecast.fixed_us += forecast.build_us;
  sim::Simulator simulator;
  sim::RooflineRun roofline;
  RETURN_IF_ERROR(run_schedule(schedule, request, simulator, roofline, forecast));
  forecast.weight_bytes = weight_bytes(list, infos.size(), options);
  if (with_trace) {
    const bool coarse = request.fidelity == Fidelity::kRoofline;
    forecast.trace =
        sim::trace_of(list, coarse ? roofline.times() : simulator.times(), plan.devices, options);
  }
  return forecast;
}

}  // namespace troika::planner
