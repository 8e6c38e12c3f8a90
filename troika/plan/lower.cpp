#include "troika/plan/lower.h"

#include <algorithm>

#include "troika/plan/rows.h"
#include "troika/plan/shares.h"
#include "troika/plan/task_order.h"

namespace troika::plan {
namespace {

using graph::OpId;
using graph::OpKind;
using graph::Stage;
using graph::TensorId;

constexpr int32_t kNoTask = -1;

// Who wrote what readers have to wait for: tensors, and each layer's KV cache. A writer is any
// number, of an operator or of a task.
class Writers {
 public:
  explicit Writers(const graph::Graph& graph)
      : graph_(graph), tensors_(graph.tensors.size()), kv_(static_cast<size_t>(graph.n_layers)) {}

  void record(const graph::Op& op, int32_t writer) {
    tensors_[static_cast<size_t>(graph_.memory_of(op.output))].push_back(
        {columns_of(op.output), writer});
    if (op.kind == OpKind::kKvWrite) {
      kv_[static_cast<size_t>(op.layer)].push_back(
          {{op.heads.first_head, op.heads.first_head + op.heads.n_heads}, writer});
    }
  }

  // Of what the operator reads, ascending, each once.
  std::vector<int32_t> before(const graph::Op& op) const {
    std::vector<int32_t> writers;
    for (const TensorId input : op.inputs) {
      collect(tensors_[static_cast<size_t>(graph_.memory_of(input))], columns_of(input), writers);
    }
    if (op.kind == OpKind::kAttention) {
      // All earlier blocks' keys: whose they are is known only when the pass runs.
      const int64_t first = op.heads.first_head / op.heads.group;
      const int64_t last = (op.heads.first_head + op.heads.n_heads - 1) / op.heads.group;
      collect(kv_[static_cast<size_t>(op.layer)], {first, last + 1}, writers);
    }
    std::sort(writers.begin(), writers.end());
    writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
    return writers;
  }

 private:
  // Columns of a tensor with memory of its own, or heads.
  struct Write {
    Range span;
    int32_t writer = 0;
  };

  Range columns_of(TensorId id) const {
    const graph::Tensor& tensor = graph_.tensor(id);
    // A tensor that only orders has one place.
    return {tensor.window_begin, tensor.window_begin + std::max<int64_t>(tensor.width, 1)};
  }

  static void collect(const std::vector<Write>& writes, Range span, std::vector<int32_t>& writers) {
    for (const Write& write : writes) {
      const bool overlap = write.span.begin < span.end && span.begin < write.span.end;
      if (overlap) writers.push_back(write.writer);
    }
  }

  const graph::Graph& graph_;
  std::vector<std::vector<Write>> tensors_;  // by tensor with memory
  std::vector<std::vector<Write>> kv_;       // by layer
};

// By operator: whether another device reads what it writes.
std::vector<bool> find_crossing(const CutGraph& cut) {
  std::vector<bool> crosses(cut.graph.ops.size(), false);
  Writers writers(cut.graph);
  for (size_t i = 0; i < cut.graph.ops.size(); ++i) {
    const graph::Op& op = cut.graph.ops[i];
    for (const int32_t other : writers.before(op)) {
      const auto writer = static_cast<size_t>(other);
      if (cut.assignments[writer].device != cut.assignments[i].device) crosses[writer] = true;
    }
    writers.record(op, static_cast<int32_t>(i));
  }
  return crosses;
}

// By operator: whether another device reads what it writes, and its own device goes on with a
// product or attention in the same stage, of which nobody else needs anything: who waits should not
// wait for that too.
std::vector<bool> find_ends(const CutGraph& cut, size_t n_devices) {
  enum class Next { kNothing, kOwnWork, kForOthers };
  struct Place {
    Stage stage = Stage::kInput;
    int32_t layer = -1;
    int32_t block = -1;
    bool operator==(const Place&) const = default;
  };
  const std::vector<bool> crosses = find_crossing(cut);
  std::vector<Place> places(n_devices);
  std::vector<Next> next(n_devices, Next::kNothing);
  std::vector<bool> ends(crosses.size(), false);
  for (size_t i = crosses.size(); i-- > 0;) {
    const graph::Op& op = cut.graph.ops[i];
    const auto device = static_cast<size_t>(cut.assignments[i].device);
    const Place place = {op.stage, op.layer, cut.assignments[i].block};
    if (places[device] != place) next[device] = Next::kNothing;
    places[device] = place;
    ends[i] = crosses[i] && next[device] == Next::kOwnWork;
    if (crosses[i]) {
      next[device] = Next::kForOthers;
    } else if (op.kind == OpKind::kMatMul || op.kind == OpKind::kAttention) {
      next[device] = Next::kOwnWork;
    }
  }
  return ends;
}

// Groups the operators of a cut graph into tasks and finds what each waits for.
//
// Operators of one device, stage, layer and block form one task: few enough to queue cheaply, each
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
        writers_(cut.graph),
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
      ASSIGN_OR_RETURN(Task task, begin(op, assignment));
      open_[device] = order_.add(assignment.device);
      add_waits(task, open_[device], waits);
      tasks.push_back(std::move(task));
    }
    append(tasks[static_cast<size_t>(open_[device])], id);
    writers_.record(op, open_[device]);
    return {};
  }

  bool joins(const Task& task, OpId id) const {
    const graph::Op& op = cut_.graph.op(id);
    const Assignment& assignment = cut_.assignments[static_cast<size_t>(id)];
    if (ends_[static_cast<size_t>(task.program.ops.back())]) return false;
    return task.stage == op.stage && task.layer == op.layer && task.block == block_of(assignment) &&
           task.program.input_stationary == assignment.input_stationary;
  }

  Result<Task> begin(const graph::Op& op, const Assignment& assignment) const {
    Task task;
    task.name = op.layer < 0 ? std::string(to_string(op.stage))
                             : fmt::format("{} layer {}", to_string(op.stage), op.layer);
    task.device = assignment.device;
    task.stage = op.stage;
    task.layer = op.layer;
    task.block = block_of(assignment);
    task.delay = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(assignment.delay_us));
    task.program.graph = &cut_.graph;
    task.program.input_stationary = assignment.input_stationary;
    const int64_t rows =
        op.stage == Stage::kHead
            ? max_logit_rows_
            : cut_.blocks[task.block == kWholePass ? 0 : static_cast<size_t>(task.block)].rows;
    const device::DeviceInfo& info = infos_[static_cast<size_t>(assignment.device)];
    task.program.max_rows = padded_rows(rows, info.standard_rows);
    if (task.program.max_rows == 0) {
      return make_error(ErrorCode::kUnsupported, "device {} has no length for {} rows of {}",
                        info.name, rows, task.name);
    }
    return task;
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
