#include "troika/runtime/schedule.h"

#include <algorithm>

namespace troika::runtime {
namespace {

// The output projection belongs to the attention whose slices it takes.
WorkPart part_of(const graph::Graph& cut, const plan::Task& task) {
  switch (task.stage) {
    case graph::Stage::kG1:
    case graph::Stage::kAttention:
      return WorkPart::kAttention;
    case graph::Stage::kHead:
      return WorkPart::kHead;
    case graph::Stage::kG2:
      break;
    case graph::Stage::kInput:
      return WorkPart::kOther;
  }
  const auto& ops = task.program.ops;
  const bool projects = std::any_of(ops.begin(), ops.end(), [&](graph::OpId id) {
    return cut.op(id).kind == graph::OpKind::kMatMul && plan::product_name(cut, id) == "o";
  });
  const bool activates = std::any_of(ops.begin(), ops.end(), [&](graph::OpId id) {
    return cut.op(id).kind == graph::OpKind::kSiluMul;
  });
  return projects && !activates ? WorkPart::kAttention : WorkPart::kMlp;
}

}  // namespace

Result<std::unique_ptr<Schedule>> make_schedule(
    const plan::Plan& plan, size_t bucket, const graph::Graph& graph, int64_t rows,
    int64_t max_logit_rows, std::span<const std::unique_ptr<device::Device>> devices) {
  std::vector<device::DeviceInfo> infos;
  for (const auto& device : devices) infos.push_back(device->info());
  auto schedule = std::make_unique<Schedule>();
  schedule->bucket = bucket;
  ASSIGN_OR_RETURN(schedule->list,
                   plan::lower(plan, plan.buckets[bucket], graph, rows, max_logit_rows, infos));
  const graph::Graph& cut = schedule->list.cut->graph;
  for (const plan::Task& task : schedule->list.tasks) {
    const auto& device = devices[static_cast<size_t>(task.device)];
    for (const graph::OpId op : task.program.ops) {
      if (device->supports(cut, op)) continue;
      return make_error(ErrorCode::kUnsupported, "device {} cannot compute {} of {}",
                        device->info().name, to_string(cut.op(op).kind), task.name);
    }
  }
  schedule->durations.resize(schedule->list.tasks.size());
  schedule->usual.resize(schedule->list.tasks.size());
  schedule->typical.resize(schedule->list.tasks.size());
  for (const plan::Task& task : schedule->list.tasks) {
    schedule->parts.push_back(part_of(cut, task));
  }
  return schedule;
}

Status compile(Schedule& schedule, std::span<const std::unique_ptr<device::Device>> devices,
               const std::function<bool()>& cancelled, size_t& failed) {
  std::vector<std::unique_ptr<device::Kernel>> kernels;
  for (const plan::Task& task : schedule.list.tasks) {
    if (cancelled && cancelled()) {
      return make_error(ErrorCode::kCancelled, "interrupted while devices were prepared");
    }
    failed = static_cast<size_t>(task.device);
    ASSIGN_OR_RETURN(auto kernel, devices[failed]->compile(task.program));
    kernels.push_back(std::move(kernel));
  }
  schedule.kernels = std::move(kernels);
  return {};
}

void bind(Schedule& schedule, std::byte* memory) {
  const std::vector<plan::Slot>& slots = schedule.list.memory.slots;
  schedule.bindings.clear();
  for (const plan::Task& task : schedule.list.tasks) {
    std::vector<device::TensorView> views;
    for (const graph::TensorId tensor : task.program.tensors) {
      const plan::Slot& slot = slots[static_cast<size_t>(tensor)];
      views.push_back({memory + slot.offset, slot.row_stride});
    }
    schedule.bindings.push_back(std::move(views));
  }
  const plan::Slot& logits = slots[static_cast<size_t>(schedule.list.cut->graph.logits)];
  schedule.logits = reinterpret_cast<const float*>(memory + logits.offset);
  schedule.logits_stride = logits.row_stride / static_cast<int64_t>(sizeof(float));
}

}  // namespace troika::runtime
