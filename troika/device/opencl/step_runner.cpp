#include "troika/device/opencl/step_runner.h"

#include <algorithm>

namespace troika::device::opencl {
namespace {

using graph::Op;
using graph::OpKind;

// As kernels/rows.cl has it.
constexpr size_t kNormGroup = 256;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool halves(const graph::HeadShape& heads) { return heads.rope_pairs == model::RopePairs::kHalves; }

}  // namespace

Status StepRunner::run(const Step& step) {
  if (rows(step) == 0) return {};
  launches_ = step.launches.get();
  launches_->begin(mirrors_.generation() + batch_data_.generation() + scratch_.generation());
  switch (step.kind) {
    case StepKind::kProducts:
      return products(step);
    case StepKind::kKvWrite:
      return kv_write(step);
    case StepKind::kOther:
      return run_other(step);
  }
  return {};
}

Result<View> StepRunner::view(TensorIndex index) {
  const TensorView& bound = bindings_.tensors[static_cast<size_t>(index)];
  ASSIGN_OR_RETURN(const Place place, mirrors_.find(bound.data));
  return View{place.buffer, place.floats(), bound.row_stride / static_cast<int64_t>(sizeof(float))};
}

int64_t StepRunner::width(TensorIndex index) const {
  return graph_.tensor(program_.tensors[static_cast<size_t>(index)]).width;
}

Status StepRunner::launch_items(Arguments& arguments, int64_t items, int64_t n_rows) {
  arguments.count(items);
  LaunchSize size;
  size.global = {static_cast<size_t>(round_up(items, kItemGroup)), static_cast<size_t>(n_rows)};
  size.local = {static_cast<size_t>(kItemGroup), 1};
  return launch(queue_, arguments, size);
}

Status StepRunner::run_other(const Step& step) {
  switch (step.op->kind) {
    case OpKind::kEmbed:
      return embed(step);
    case OpKind::kRmsNorm:
      return norm(*step.op, *step.weight, step.inputs[0], step.output, rows(step));
    case OpKind::kRope:
      return rope(step);
    case OpKind::kSiluMul:
      return element_wise("silu_mul", step.inputs, step.output, rows(step));
    case OpKind::kAdd:
      return add(step);
    case OpKind::kConcat:
      return concat(step);
    case OpKind::kGatherRows:
      return gather(step);
    case OpKind::kAttention:
      return attention(step);
    case OpKind::kRopeTable:  // made by the host
    case OpKind::kMatMul:
    case OpKind::kKvWrite:
      break;
  }
  return {};
}

Status StepRunner::embed(const Step& step) {
  const DeviceWeight& weight = *step.weight;
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels_.embed(step.op->weight->type, step.weight->tiled));
  ASSIGN_OR_RETURN(const View y, view(step.output));
  Arguments arguments(kernel, launches_);
  arguments.buffer(weight.buffer())
      .place(static_cast<uint64_t>(weight.begin))
      .place(static_cast<uint64_t>(weight.row_stride))
      .place(static_cast<uint64_t>(weight.scales));
  add_batch(arguments, batch_data_.places().tokens);
  arguments.buffer(y.buffer).place(y.begin).count(y.stride);
  return launch_items(arguments, width(step.output), rows(step));
}

Status StepRunner::norm(const Op& op, const DeviceWeight& gain, TensorIndex input,
                        TensorIndex output, int64_t n_rows) {
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel("rms_norm"));
  ASSIGN_OR_RETURN(const View x, view(input));
  ASSIGN_OR_RETURN(const View y, view(output));
  Arguments arguments(kernel, launches_);
  arguments.buffer(x.buffer).place(x.begin).count(x.stride);
  arguments.buffer(gain.buffer())
      .place(static_cast<uint64_t>(gain.begin) / sizeof(float))
      .value(static_cast<cl_float>(op.eps))
      .count(width(output));
  arguments.buffer(y.buffer).place(y.begin).count(y.stride);
  const size_t group = kernels_.device_class() == DeviceClass::kHost ? 1 : kNormGroup;
  LaunchSize size;
  size.global = {static_cast<size_t>(n_rows) * group, 1};
  size.local = {group, 1};
  return launch(queue_, arguments, size);
}

Status StepRunner::rope(const Step& step) {
  const graph::HeadShape& heads = step.op->heads;
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel("rope"));
  Arguments arguments(kernel, launches_);
  for (const TensorIndex tensor : {step.inputs[0], step.inputs[1], step.output}) {
    ASSIGN_OR_RETURN(const View part, view(tensor));
    arguments.buffer(part.buffer).place(part.begin).count(part.stride);
  }
  arguments.count(heads.head_dim).count(heads.rope_dim).flag(halves(heads));
  return launch_items(arguments, heads.n_heads * (heads.head_dim - heads.rope_dim / 2), rows(step));
}

Status StepRunner::element_wise(const char* name, const std::vector<TensorIndex>& inputs,
                                TensorIndex output, int64_t n_rows) {
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel(name));
  Arguments arguments(kernel, launches_);
  for (const TensorIndex input : inputs) {
    ASSIGN_OR_RETURN(const View x, view(input));
    arguments.buffer(x.buffer).place(x.begin).count(x.stride);
  }
  ASSIGN_OR_RETURN(const View y, view(output));
  arguments.buffer(y.buffer).place(y.begin).count(y.stride);
  return launch_items(arguments, width(output), n_rows);
}

Status StepRunner::add(const Step& step) {
  RETURN_IF_ERROR(element_wise("add", {step.inputs[0], step.inputs[1]}, step.output, rows(step)));
  for (size_t i = 2; i < step.inputs.size(); ++i) {
    RETURN_IF_ERROR(element_wise("add", {step.output, step.inputs[i]}, step.output, rows(step)));
  }
  return {};
}

Status StepRunner::concat(const Step& step) {
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel("copy_columns"));
  ASSIGN_OR_RETURN(const View y, view(step.output));
  uint64_t begin = y.begin;
  for (const TensorIndex input : step.inputs) {
    ASSIGN_OR_RETURN(const View x, view(input));
    Arguments arguments(kernel, launches_);
    arguments.buffer(x.buffer).place(x.begin).count(x.stride);
    arguments.buffer(y.buffer).place(begin).count(y.stride);
    RETURN_IF_ERROR(launch_items(arguments, width(input), rows(step)));
    begin += static_cast<uint64_t>(width(input));
  }
  return {};
}

Status StepRunner::gather(const Step& step) {
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel("gather_rows"));
  ASSIGN_OR_RETURN(const View x, view(step.inputs[0]));
  ASSIGN_OR_RETURN(const View y, view(step.output));
  Arguments arguments(kernel, launches_);
  arguments.buffer(x.buffer).place(x.begin).count(x.stride);
  arguments.buffer(y.buffer)
      .place(y.begin + static_cast<uint64_t>(batch_.first_logit_row * y.stride))
      .count(y.stride);
  add_batch(arguments, batch_data_.places().wanted);
  return launch_items(arguments, width(step.output),
                      static_cast<int64_t>(batch_.logit_rows.size()));
}

Result<KvPlaces> StepRunner::kv_places(const Op& op, int64_t kv_head) {
  const KvLayout& layout = batch_.kv_layout;
  ASSIGN_OR_RETURN(const Place place, mirrors_.find(batch_.kv));
  const int64_t element = kv_type_bytes(layout.type);
  KvPlaces places;
  places.type = layout.type;
  places.buffer = place.buffer;
  places.first =
      static_cast<uint64_t>((place.offset + layout.head_offset(op.layer, kv_head, 0)) / element);
  places.head_step = static_cast<uint64_t>(2 * layout.head_bytes() / element);
  places.values = static_cast<uint64_t>(layout.head_bytes() / element);
  return places;
}

Status StepRunner::kv_write(const Step& step) {
  const graph::HeadShape& heads = step.op->heads;
  const int64_t n_rows = batch_.n_rows;
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels_.row_kernel("kv_write", batch_.kv_layout.type));
  ASSIGN_OR_RETURN(const View k, view(step.inputs[0]));
  ASSIGN_OR_RETURN(const View v, view(step.inputs[1]));
  View table = k;
  if (step.key_rope != nullptr) {
    ASSIGN_OR_RETURN(table, view(step.key_table));
  }
  ASSIGN_OR_RETURN(const KvPlaces kv, kv_places(*step.op, heads.first_head));
  Arguments arguments(kernel, launches_);
  for (const View& part : {k, v, table}) {
    arguments.buffer(part.buffer).place(part.begin).count(part.stride);
  }
  arguments.buffer(kv.buffer).place(kv.first).place(kv.head_step).place(kv.values);
  add_batch(arguments, batch_data_.places().keys);
  arguments.count(heads.n_heads)
      .count(heads.head_dim)
      .count(step.key_rope == nullptr ? 0 : step.key_rope->heads.rope_dim)
      .flag(step.key_rope != nullptr && halves(step.key_rope->heads));
  int64_t query_heads = 0;
  View q = k;
  View rotated = k;
  if (step.query_rope != nullptr) {
    query_heads = step.query_rope->heads.n_heads;
    ASSIGN_OR_RETURN(q, view(step.query));
    ASSIGN_OR_RETURN(rotated, view(step.rotated_query));
  }
  for (const View& part : {q, rotated}) {
    arguments.buffer(part.buffer).place(part.begin).count(part.stride);
  }
  return launch_items(arguments, (2 * heads.n_heads + query_heads) * heads.head_dim, n_rows);
}

}  // namespace troika::device::opencl
