#include "troika/plan/lower.h"

#include <algorithm>

#include "troika/device/kept_tasks.h"
#include "troika/plan/rows.h"
#include "troika/plan/shares.h"
#include "troika/plan/task_order.h"
#include "troika/plan/writers.h"

namespace troika::plan {
namespace {

using graph::OpId;
using graph::OpKind;
using graph::Stage;
using graph::TensorId;

constexpr int32_t kNoTask = -1;

// Groups the operators of a cut graph into tasks and finds what each waits for.
//
// Operators of one device, step and block form one task: few enough to queue cheaply, each
// end a place where devices can meet. A task begins anew where an operator needs something of
// another device that its beginning did not wait for, and ends behind what another device reads:
// nobody waits for more than it needs.
class Grouping {
 public:
  Grouping(const Plan& plan, const CutGraph& cut, int64_t max_logit_rows,
           std::span<const device::DeviceInfo> infos)
      : cut_(cut),
        max_logit_rows_(max_logit_rows),
        infos_(infos),
        order_(plan.devices.size()),
        open_(plan.devices.size(), kNoTask),
        writers_(cut),
        ends_(find_ends(cut, plan.devices.size())) {}

  Status run(std::vector<Task>& tasks) {
    for (size_t i = 0; i < cut_.graph.ops.size(); ++i) {
      RETURN_IF_ERROR(add(static_cast<OpId>(i), tasks));
    }
    return {};
  }

 private:
  // With a single block, all rows are the whole pass.
  int32_t block_of(const Assignment& assignment) const {
    return cut_.blocks.size() == 1 ? kWholePass : assignment.block;
  }

  Status add(OpId id, std::vector<Task>& tasks) {
    const graph::Op& op = cut_.graph.op(id);
    const Assignment& assignment = cut_.assignments[static_cast<size_t>(id)];
    const auto device = static_cast<size_t>(assignment.device);
    std::vector<int32_t> waits;
    for (const int32_t other : writers_.before(op)) {
      if (order_.device(other) == assignment.device) continue;
      if (open_[device] != kNoTask && order_.before(other, open_[device])) continue;
      if (order_.before_next(other, assignment.device)) continue;
      waits.push_back(other);
    }
    const bool fits = open_[device] != kNoTask && waits.empty() &&
                      joins(tasks[static_cast<size_t>(open_[device])], id);
    if (!fits) {
      ASSIGN_OR_RETURN(Task fresh, begin(op, assignment));
      open_[device] = order_.add(assignment.device);
      add_waits(fresh, open_[device], waits);
      tasks.push_back(std::move(fresh));
    }
    Task& task = tasks[static_cast<size_t>(open_[device])];
    task.program.max_rows = std::max(task.program.max_rows, max_rows_of(op, assignment));
    append(task, id);
    writers_.record(op, open_[device]);
    return {};
  }

  bool joins(const Task& task, OpId id) const {
    const graph::Op& op = cut_.graph.op(id);
    const Assignment& assignment = cut_.assignments[static_cast<size_t>(id)];
    const auto last = static_cast<size_t>(task.program.ops.back());
    if (ends_[last]) return false;
    return cut_.assignments[last].step == assignment.step && task.block == block_of(assignment) &&
           task.program.input_stationary == assignment.input_stationary &&
           (infos_[static_cast<size_t>(assignment.device)].standard_rows.empty() ||
            task.program.max_rows == max_rows_of(op, assignment));
  }

  Result<Task> begin(const graph::Op& op, const Assignment& assignment) const {
    Task task;
    task.name = op.layer < 0 ? std::string(to_string(op.stage))
                             : fmt::format("{} layer {}", to_string(op.stage), op.layer);
    if (assignment.block != kWholePass) {
      const Block& block = cut_.blocks[static_cast<size_t>(assignment.block)];
      if (block.chunks > 1) {
        task.name += fmt::format(" chunks {}-{}", block.chunk, block.chunk + block.chunks - 1);
      }
    }
    task.device = assignment.device;
    task.stage = op.stage;
    task.layer = op.layer;
    task.block = block_of(assignment);
    task.delay = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(assignment.delay_us));
    task.program.graph = &cut_.graph;
    task.program.input_stationary = assignment.input_stationary;
    task.program.max_rows = max_rows_of(op, assignment);
    if (task.program.max_rows == 0) {
      return make_error(ErrorCode::kUnsupported, "device {} has no length for {} rows of {}",
                        infos_[static_cast<size_t>(assignment.device)].name,
                        rows_of(op, assignment), task.name);
    }
    return task;
  }

  // The head works on wanted rows, but may have to finish sums of all rows before.
  int64_t rows_of(const graph::Op& op, const Assignment& assignment) const {
    if (cut_.graph.tensor(op.output).rows == graph::RowCount::kLogits) return max_logit_rows_;
    return cut_.blocks[static_cast<size_t>(std::max(assignment.block, 0))].rows;
  }

  int64_t max_rows_of(const graph::Op& op, const Assignment& assignment) const {
    return padded_rows(rows_of(op, assignment),
                       infos_[static_cast<size_t>(assignment.device)].standard_rows);
  }

  void add_waits(Task& task, int32_t number, const std::vector<int32_t>& waits) {
    // The latest first: it may imply the others.
    for (auto other = waits.rbegin(); other != waits.rend(); ++other) {
      if (order_.before(*other, number)) continue;
      order_.wait(number, *other);
      task.waits.push_back(*other);
      // Who is waited for should not grow.
      int32_t& open = open_[static_cast<size_t>(order_.device(*other))];
      if (open == *other) open = kNoTask;
    }
    std::sort(task.waits.begin(), task.waits.end());
  }

  void append(Task& task, OpId id) const {
    const graph::Graph& graph = cut_.graph;
    const graph::Op& op = graph.op(id);
    task.program.ops.push_back(id);
    auto& tensors = task.program.tensors;
    const auto add_tensor = [&](TensorId tensor) {
      if (std::find(tensors.begin(), tensors.end(), tensor) != tensors.end()) return;
      tensors.push_back(tensor);
      task.activation_bytes_per_row +=
          graph.tensor(tensor).width * graph::dtype_bytes(graph.tensor(tensor).type);
    };
    for (const TensorId input : op.inputs) add_tensor(input);
    add_tensor(op.output);
    if (op.kind == OpKind::kEmbed) {
      task.activation_bytes_per_row += graph::weight_bytes(graph, id);
    } else {
      task.weight_bytes += graph::weight_bytes(graph, id);
    }
    if (op.kind == OpKind::kAttention) {
      task.macs_per_key += graph::macs_per_row(graph, id, 1);
    } else {
      task.macs_per_row += graph::macs_per_row(graph, id, 0);
    }
    if (op.kind == OpKind::kConcat) {
      const graph::Tensor& output = graph.tensor(op.output);
      task.join_bytes_per_row += 2 * output.width * graph::dtype_bytes(output.type);
    }
  }

  const CutGraph& cut_;
  int64_t max_logit_rows_;
  std::span<const device::DeviceInfo> infos_;
  TaskOrder order_;
  std::vector<int32_t> open_;  // by device: the task that may still grow
  Writers writers_;            // tasks
  const std::vector<bool> ends_;
};

// What others than the task itself read, windows of it included.
void find_outputs(const graph::Graph& graph, std::vector<Task>& tasks) {
  const auto memory_of = [&](TensorId id) { return static_cast<size_t>(graph.memory_of(id)); };
  // The only task that reads a tensor by the name it was written by: kNoTask if none, kSeveral.
  constexpr int32_t kSeveral = -2;
  std::vector<int32_t> reader(graph.tensors.size(), kNoTask);
  // Read as a window, or as what its windows make up: a device would not find it.
  std::vector<bool> read_otherwise(graph.tensors.size(), false);
  for (size_t t = 0; t < tasks.size(); ++t) {
    for (const OpId id : tasks[t].program.ops) {
      for (const TensorId input : graph.op(id).inputs) {
        int32_t& only = reader[static_cast<size_t>(input)];
        const auto number = static_cast<int32_t>(t);
        only = only == kNoTask || only == number ? number : kSeveral;
        if (graph.tensor(input).producer < 0) read_otherwise[memory_of(input)] = true;
      }
    }
  }
  read_otherwise[memory_of(graph.logits)] = true;
  for (size_t t = 0; t < tasks.size(); ++t) {
    auto& program = tasks[t].program;
    for (const OpId id : program.ops) {
      const TensorId output = graph.op(id).output;
      const bool inner = reader[static_cast<size_t>(output)] == static_cast<int32_t>(t) &&
                         !read_otherwise[memory_of(output)];
      const bool known = std::find(program.outputs.begin(), program.outputs.end(), output) !=
                         program.outputs.end();
      if (!inner && !known) program.outputs.push_back(output);
    }
  }
}

// Times of all tasks of a pass are read at its end.
Status check_task_counts(const std::vector<Task>& tasks, const Plan& plan, int64_t rows) {
  std::vector<int64_t> counts(plan.devices.size(), 0);
  for (const Task& task : tasks) ++counts[static_cast<size_t>(task.device)];
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < device::kKeptTasks) continue;
    return make_error(ErrorCode::kUnsupported,
                      "plan: a pass of {} rows has {} tasks for device {}, at most {} can be "
                      "timed: use larger chunks",
                      rows, counts[i], plan.devices[i], device::kKeptTasks - 1);
  }
  return {};
}

}  // namespace

Result<TaskList> lower(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                       int64_t rows, int64_t max_logit_rows,
                       std::span<const device::DeviceInfo> infos) {
  TaskList list;
  list.rows = rows;
  list.any_rows = same_for_all_rows(plan, bucket, infos);
  const int64_t logit_rows = std::min(max_logit_rows, rows);
  ASSIGN_OR_RETURN(CutGraph cut_graph, cut(plan, bucket, graph, rows, logit_rows, infos));
  list.cut = std::make_unique<CutGraph>(std::move(cut_graph));
  RETURN_IF_ERROR(Grouping(plan, *list.cut, logit_rows, infos).run(list.tasks));
  RETURN_IF_ERROR(check_task_counts(list.tasks, plan, rows));
  find_outputs(list.cut->graph, list.tasks);
  for (Task& task : list.tasks) task.program.sole_device = plan.devices.size() == 1;
  int64_t padded_logit_rows = logit_rows;
  for (const device::DeviceInfo& info : infos) {
    padded_logit_rows = std::max(padded_logit_rows, padded_rows(logit_rows, info.standard_rows));
  }
  list.memory = plan_memory(*list.cut, list.tasks, padded_logit_rows);
  return list;
}

}  // namespace troika::plan
