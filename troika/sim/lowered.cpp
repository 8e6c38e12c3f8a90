#include "troika/sim/lowered.h"

#include <algorithm>
#include <map>
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

// The products that a device has had, for what goes between them.
class ProductQueue {
 public:
  double move(const cost::RunFacts& facts, const graph::Graph& graph, const Op& op,
              const cost::Estimate& estimate) {
    const graph::WeightSlice slice = graph::weight_slice(graph, op);
    const auto [found, is_new] =
        weights_.try_emplace(slice.weight, static_cast<int64_t>(weights_.size()));
    const Place next{estimate.path, found->second, slice.n_begin, slice.n, slice.k_begin, slice.k};
    const double us = switch_us(facts, last_, next);
    last_ = next;
    return us;
  }

 private:
  std::map<const model::Weight*, int64_t> weights_;
  Place last_;
};

// Adds up what the operators of one task need on its device, each by itself.
class TaskCost {
 public:
  TaskCost(const graph::Graph& graph, const cost::CostModel& cost, size_t device, Rows rows,
           bool input_stationary, const LoweredOptions& options, ProductQueue& queue)
      : graph_(graph),
        cost_(cost),
        device_(device),
        rows_(rows),
        input_stationary_(input_stationary),
        options_(options),
        facts_(cost.run_facts(device)),
        queue_(queue) {}

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
    needed_.add(*estimate, facts_);
    if (op.kind == OpKind::kMatMul) switches_us_ += queue_.move(facts_, graph_, op, *estimate);
    return true;
  }

  const Needed& needed() const { return needed_; }
  double switches_us() const { return switches_us_; }

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
    const double bits =
        stored_bits(asked_bits(options_, op.stage), graph::weight_bytes(graph_, id), n, k);
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
  cost::RunFacts facts_;
  ProductQueue& queue_;
  Needed needed_;
  double switches_us_ = 0;
};

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
  set_chip(cost, options.devices, schedule);
  schedule.tasks.reserve(list.tasks.size());
  std::vector<ProductQueue> queues(options.devices.size());
  const bool joined = std::any_of(list.tasks.begin(), list.tasks.end(),
                                  [](const plan::Task& task) { return !task.waits.empty(); });
  for (const plan::Task& from : list.tasks) {
    if (static_cast<size_t>(from.device) >= options.devices.size()) {
      return make_error(ErrorCode::kInvalidArgument, "task {} is on device {} of {}", from.name,
                        from.device, options.devices.size());
    }
    const size_t device = options.devices[static_cast<size_t>(from.device)];
    TaskCost work(list.cut->graph, cost, device, rows_of(list, from, options),
                  from.program.input_stationary, options, queues[static_cast<size_t>(from.device)]);
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
    set_work(cost, device, options.sync, work.needed(), work.switches_us(), joined, task);
    schedule.waits.insert(schedule.waits.end(), from.waits.begin(), from.waits.end());
    schedule.tasks.push_back(task);
  }
  RETURN_IF_ERROR(check(schedule));
  return schedule;
}

Trace trace_of(const plan::TaskList& list, std::span<const TaskTimes> all_times,
               std::span<const std::string> names, const LoweredOptions& options) {
  Trace trace;
  trace.simulated = true;
  for (const std::string& name : names) trace.devices.push_back({name, "simulated"});
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    const plan::Task& task = list.tasks[i];
    const TaskTimes& times = all_times[i];
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
