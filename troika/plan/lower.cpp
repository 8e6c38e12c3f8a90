#include "troika/plan/lower.h"

#include <algorithm>

namespace troika::plan {
namespace {

bool covers(const Placement& placement, const graph::Op& op) {
  return placement.stage == op.stage && placement.first_layer <= op.layer &&
         op.layer <= placement.last_layer;
}

int32_t device_of(const Plan& plan, const RowsBucket& bucket, const graph::Op& op) {
  const auto placement = std::find_if(bucket.placements.begin(), bucket.placements.end(),
                                      [&](const Placement& p) { return covers(p, op); });
  const auto device = std::find(plan.devices.begin(), plan.devices.end(), placement->device);
  return static_cast<int32_t>(device - plan.devices.begin());
}

void add_tensor(device::Program& program, graph::TensorId tensor) {
  auto& tensors = program.tensors;
  if (std::find(tensors.begin(), tensors.end(), tensor) == tensors.end()) tensors.push_back(tensor);
}

void add_op(Task& task, const graph::Graph& graph, graph::OpId id) {
  const graph::Op& op = graph.op(id);
  task.program.ops.push_back(id);
  for (const graph::TensorId input : op.inputs) add_tensor(task.program, input);
  add_tensor(task.program, op.output);
  if (op.kind == graph::OpKind::kEmbed) {
    task.activation_bytes_per_row += graph::weight_bytes(graph, id);
  } else {
    task.weight_bytes += graph::weight_bytes(graph, id);
  }
  if (op.kind == graph::OpKind::kAttention) {
    task.macs_per_key += graph::macs_per_row(graph, id, 1);
  } else {
    task.macs_per_row += graph::macs_per_row(graph, id, 0);
  }
  const graph::Tensor& out = graph.tensor(op.output);
  task.activation_bytes_per_row += out.width * graph::dtype_bytes(out.type);
}

// A task waits for the last earlier task of each other device that writes something it reads.
void find_waits(std::vector<Task>& tasks, size_t index, const std::vector<int32_t>& writer) {
  Task& task = tasks[index];
  for (const graph::TensorId tensor : task.program.tensors) {
    const int32_t from = writer[static_cast<size_t>(tensor)];
    if (from < 0 || static_cast<size_t>(from) == index) continue;
    if (tasks[static_cast<size_t>(from)].device == task.device) continue;
    if (std::find(task.waits.begin(), task.waits.end(), from) == task.waits.end()) {
      task.waits.push_back(from);
    }
  }
}

// What others than the task itself read.
void find_outputs(Task& task, const graph::Graph& graph) {
  const auto in_task = [&](graph::OpId id) {
    const auto& ops = task.program.ops;
    return std::find(ops.begin(), ops.end(), id) != ops.end();
  };
  for (const graph::OpId id : task.program.ops) {
    const graph::TensorId tensor = graph.op(id).output;
    bool read_elsewhere = tensor == graph.logits;
    for (size_t other = 0; other < graph.ops.size() && !read_elsewhere; ++other) {
      const auto& inputs = graph.ops[other].inputs;
      read_elsewhere = std::find(inputs.begin(), inputs.end(), tensor) != inputs.end() &&
                       !in_task(static_cast<graph::OpId>(other));
    }
    if (read_elsewhere) task.program.outputs.push_back(tensor);
  }
}

}  // namespace

Result<TaskList> lower(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                       int64_t max_logit_rows) {
  TaskList list;
  list.memory = plan_memory(graph, bucket.max_rows, max_logit_rows);
  std::vector<int32_t> writer(graph.tensors.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const graph::Op& op = graph.ops[i];
    // One task for each stage of each layer: few enough to queue cheaply, each one a place where
    // devices can meet.
    const bool same_place = !list.tasks.empty() && list.tasks.back().stage == op.stage &&
                            list.tasks.back().layer == op.layer;
    if (!same_place) {
      Task task;
      task.name = op.layer < 0 ? std::string(to_string(op.stage))
                               : fmt::format("{} layer {}", to_string(op.stage), op.layer);
      task.device = device_of(plan, bucket, op);
      task.stage = op.stage;
      task.layer = op.layer;
      task.program.graph = &graph;
      task.program.max_rows = bucket.max_rows;
      list.tasks.push_back(std::move(task));
    }
    add_op(list.tasks.back(), graph, static_cast<graph::OpId>(i));
    writer[static_cast<size_t>(op.output)] = static_cast<int32_t>(list.tasks.size() - 1);
  }
  for (size_t i = 0; i < list.tasks.size(); ++i) find_waits(list.tasks, i, writer);
  for (Task& task : list.tasks) find_outputs(task, graph);
  return list;
}

}  // namespace troika::plan
