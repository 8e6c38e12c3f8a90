#include "troika/sim/lowered.h"

#include <algorithm>
#include <optional>

#include "troika/sim/operator_cost.h"

namespace troika::sim {
namespace {

using graph::Op;
using graph::OpId;
using graph::OpKind;

struct Rows {
  int64_t count = 0;
  double keys = 0;     // that a row sees, in the mean
  int64_t padded = 0;  // that a product computes
};

Rows rows_of(const plan::TaskList& list, const plan::Task& task, const LoweredOptions& options) {
  int64_t begin = 0;
  int64_t count = list.rows;
  if (task.block != plan::kWholePass) {
    const plan::Block& block = list.cut->blocks[static_cast<size_t>(task.block)];
    begin = block.begin;
    count = block.rows;
  }
  const double keys =
      static_cast<double>(options.depth + begin) + (static_cast<double>(count) + 1) / 2;
  if (task.stage == graph::Stage::kHead) count = std::min(options.logit_rows, list.rows);
  return {count, keys, computed_rows(options, static_cast<size_t>(task.device), count)};
}

// Adds up what the operators of one task need on its device, each by itself.
class TaskCost {
 public:
  TaskCost(const graph::Graph& graph, const cost::CostModel& cost, size_t device, Rows rows,
           bool input_stationary, const LoweredOptions& options)
      : graph_(graph),
        cost_(cost),
        device_(device),
        rows_(rows),
        input_stationary_(input_stationary),
        options_(options) {}

  // False if the device cannot have it.
  bool add(OpId id) {
    const Op& op = graph_.op(id);
    std::optional<cost::Estimate> estimate;
    if (op.kind == OpKind::kMatMul) {
      estimate = product(id);
    } else if (op.kind == OpKind::kAttention) {
      estimate = attention(op);
    } else {
      estimate = cost_.elementwise(device_, activation_bytes(op));
    }
    if (!estimate) return false;
    work_us_ += estimate->work_us();
    bytes_ += estimate->bytes;
    energy_uj_ +=
        estimate->work_us() * cost_.active_w(device_, estimate->memory_us >= estimate->compute_us);
    return true;
  }

  double work_us() const { return work_us_; }
  double active_w() const { return work_us_ > 0 ? energy_uj_ / work_us_ : 0; }
  double demand_gbps() const { return work_us_ > 0 ? bytes_ / work_us_ * 1e-3 : 0; }

 private:
  double activation_bytes(const Op& op) const {
    double bytes = 0;
    const auto add = [&](graph::TensorId id) {
      const graph::Tensor& tensor = graph_.tensor(id);
      const double element_bytes = options_.activation_bits > 0
                                       ? options_.activation_bits / 8
                                       : static_cast<double>(graph::dtype_bytes(tensor.type));
      bytes += static_cast<double>(tensor.width) * element_bytes * static_cast<double>(rows_.count);
    };
    for (const graph::TensorId input : op.inputs) add(input);
    add(op.output);
    return bytes;
  }

  std::optional<cost::Estimate> product(OpId id) const {
    const Op& op = graph_.op(id);
    const int64_t n = graph_.tensor(op.output).width;
    const int64_t k = graph_.tensor(op.inputs[0]).width;
    const double bits = stored_bits(options_.weight_bits, graph::weight_bytes(graph_, id), n, k);
    return product_cost(cost_, device_, rows_.padded, n, k, bits, input_stationary_);
  }

  std::optional<cost::Estimate> attention(const Op& op) const {
    return attention_cost(cost_, device_, rows_.count, rows_.keys,
                          op.heads.n_heads * op.heads.head_dim, op.heads.group,
                          activation_bytes(op));
  }

  const graph::Graph& graph_;
  const cost::CostModel& cost_;
  size_t device_;
  Rows rows_;
  bool input_stationary_;
  const LoweredOptions& options_;
  double work_us_ = 0;
  double bytes_ = 0;
  double energy_uj_ = 0;
};

void set_chip(const cost::CostModel& cost, const std::vector<size_t>& devices, Schedule& schedule) {
  for (const size_t device : devices) {
    schedule.speed_among_others.push_back(cost.speed_among_others(device));
  }
  schedule.idle_w = cost.idle_w();
  schedule.turbo_speed = cost.turbo().speed;
  schedule.turbo_mj = cost.turbo().budget_mj;
}

Status check_devices(const LoweredOptions& options, size_t described) {
  std::vector<bool> used(described, false);
  for (const size_t device : options.devices) {
    if (device >= described || used[device]) {
      return make_error(ErrorCode::kInvalidArgument,
                        "a plan's device is mapped to device {} of a chip with {}, or two to one",
                        device, described);
    }
    used[device] = true;
  }
  return {};
}

TimePoint at(double us) { return TimePoint(static_cast<int64_t>(us * 1e3)); }

}  // namespace

Result<Schedule> schedule_from(const plan::TaskList& list, const cost::CostModel& cost,
                               const LoweredOptions& options) {
  RETURN_IF_ERROR(check_devices(options, cost.devices().size()));
  Schedule schedule;
  schedule.n_devices = options.devices.size();
  schedule.shared_gbps = shared_gbps(cost, options.devices);
  set_chip(cost, options.devices, schedule);
  schedule.tasks.reserve(list.tasks.size());
  for (const plan::Task& from : list.tasks) {
    if (static_cast<size_t>(from.device) >= options.devices.size()) {
      return make_error(ErrorCode::kInvalidArgument, "task {} is on device {} of {}", from.name,
                        from.device, options.devices.size());
    }
    const size_t device = options.devices[static_cast<size_t>(from.device)];
    TaskCost work(list.cut->graph, cost, device, rows_of(list, from, options),
                  from.program.input_stationary, options);
    for (const OpId op : from.program.ops) {
      if (work.add(op)) continue;
      return make_error(ErrorCode::kUnsupported, "{} cannot have {} of task {}",
                        cost.devices()[device].name, to_string(list.cut->graph.op(op).kind),
                        from.name);
    }
    Task task;
    task.device = from.device;
    task.first_wait = static_cast<int32_t>(schedule.waits.size());
    task.n_waits = static_cast<int32_t>(from.waits.size());
    task.delay_us = static_cast<float>(to_us(from.delay));
    task.work_us = static_cast<float>(work.work_us());
    task.demand_gbps = static_cast<float>(work.demand_gbps());
    task.active_w = static_cast<float>(work.active_w());
    set_overheads(cost, device, options.sync, task);
    schedule.waits.insert(schedule.waits.end(), from.waits.begin(), from.waits.end());
    schedule.tasks.push_back(task);
  }
  RETURN_IF_ERROR(check(schedule));
  return schedule;
}

Trace trace_of(const plan::TaskList& list, const Simulator& simulator,
               std::span<const std::string> names, const LoweredOptions& options) {
  Trace trace;
  trace.simulated = true;
  for (const std::string& name : names) trace.devices.push_back({name, "simulated"});
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    const plan::Task& task = list.tasks[i];
    const TaskTimes& times = simulator.times()[i];
    const Rows rows = rows_of(list, task, options);
    TraceEvent event;
    event.name = task.name;
    event.stage = to_string(task.stage);
    event.device = names[static_cast<size_t>(task.device)];
    event.layer = task.layer;
    event.sequences = 1;
    event.rows = rows.count;
    if (task.block != plan::kWholePass) {
      const plan::Block& block = list.cut->blocks[static_cast<size_t>(task.block)];
      event.chunk = block.chunk;
      event.row_begin = block.begin;
    }
    event.bytes = task.weight_bytes + task.activation_bytes_per_row * rows.count;
    event.copy_bytes = task.join_bytes_per_row * rows.count;
    event.macs =
        task.macs_per_row * rows.count +
        static_cast<int64_t>(static_cast<double>(task.macs_per_key * rows.count) * rows.keys);
    event.start = at(times.start_us);
    event.end = at(times.end_us);
    event.delay = std::min<Duration>(task.delay, event.start - at(times.turn_us));
    event.wait = event.start - at(times.turn_us) - event.delay;
    trace.events.push_back(std::move(event));
  }
  return trace;
}

}  // namespace troika::sim
