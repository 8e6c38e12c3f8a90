// Attention: by heads and rows, or for few rows the heads of a KV head together.
#include <algorithm>

#include "troika/device/opencl/step_runner.h"

namespace troika::device::opencl {
namespace {

// As kernels/attention.cl and kernels/attention_few.cl have them.
constexpr size_t kAttentionGroup = 256;
// Keys that a group of attention.cl takes at a time, and what a split leaves beside its sums.
constexpr int64_t kSplitKeys = 64;
constexpr int64_t kSplitFloats = 2;
constexpr int64_t kMostSplits = 64;

// Into how many groups the keys of a head and row are split, so that there are some groups for each
// compute unit.
int64_t attention_splits(int64_t groups, int64_t keys, const KernelSet& kernels) {
  constexpr int64_t kGroupsPerUnit = 3;
  const int64_t wanted = kGroupsPerUnit * kernels.compute_units() / std::max<int64_t>(groups, 1);
  const int64_t most = std::min(kMostSplits, (keys + kSplitKeys - 1) / kSplitKeys);
  return std::max<int64_t>(1, std::min(wanted, most));
}

}  // namespace

Status StepRunner::attention(const Step& step) {
  const graph::HeadShape& heads = step.op->heads;
  ASSIGN_OR_RETURN(const KvPlaces kv, kv_places(*step.op, heads.first_head / heads.group));
  const int64_t n_rows = rows(step);
  if (takes_few(heads, n_rows)) return attention_few(step, kv);
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels_.attention(heads.head_dim, batch_.kv_layout.type));
  ASSIGN_OR_RETURN(const View q, view(step.inputs[0]));
  ASSIGN_OR_RETURN(const View y, view(step.output));
  const int64_t splits = kernels_.device_class() == DeviceClass::kHost
                             ? 1
                             : attention_splits(heads.n_heads * n_rows, most_keys(), kernels_);
  Place partials{y.buffer};
  if (splits > 1) {
    ASSIGN_OR_RETURN(partials, scratch_.floats(n_rows * heads.n_heads * splits *
                                               (heads.head_dim + kSplitFloats)));
  }
  Arguments arguments(kernel, launches_);
  arguments.buffer(q.buffer).place(q.begin).count(q.stride);
  arguments.buffer(kv.buffer).place(kv.first).place(kv.head_step).place(kv.values);
  add_batch(arguments, 0);
  arguments.count(batch_data_.places().rows);
  arguments.buffer(y.buffer).place(y.begin).count(y.stride);
  arguments.count(heads.first_head)
      .count(heads.group)
      .value(static_cast<cl_float>(heads.scale))
      .count(n_rows)
      .count(heads.n_heads);
  if (kernels_.device_class() == DeviceClass::kGpu) {
    arguments.buffer(partials.buffer).place(partials.floats()).count(splits);
  }
  const size_t group = kernels_.device_class() == DeviceClass::kHost ? 1 : kAttentionGroup;
  LaunchSize size;
  size.global = {static_cast<size_t>(heads.n_heads * splits) * group, static_cast<size_t>(n_rows)};
  size.local = {group, 1};
  RETURN_IF_ERROR(launch(queue_, arguments, size));
  return splits == 1 ? Status() : join_splits(heads, partials, splits, y, n_rows);
}

Status StepRunner::join_splits(const graph::HeadShape& heads, const Place& partials, int64_t splits,
                               const View& y, int64_t n_rows) {
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels_.join_splits(heads.head_dim, batch_.kv_layout.type));
  Arguments arguments(kernel, launches_);
  arguments.buffer(partials.buffer).place(partials.floats());
  arguments.count(splits).count(heads.n_heads);
  arguments.buffer(y.buffer).place(y.begin).count(y.stride);
  LaunchSize size;
  const auto group = static_cast<size_t>(heads.head_dim);
  size.global = {static_cast<size_t>(heads.n_heads) * group, static_cast<size_t>(n_rows)};
  size.local = {group, 1};
  return launch(queue_, arguments, size);
}

int64_t StepRunner::most_keys() const {
  int64_t most = 0;
  for (const SequenceView& sequence : batch_.sequences) {
    most = std::max(most, sequence.first_position + sequence.n_rows);
  }
  return most;
}

bool StepRunner::takes_few(const graph::HeadShape& heads, int64_t n_rows) {
  const bool whole = heads.first_head % heads.group == 0 && heads.n_heads % heads.group == 0;
  return kernels_.device_class() == DeviceClass::kGpu && whole && heads.head_dim % 2 == 0 &&
         n_rows <= kMostUnitRows &&
         kernels_.attention_few(heads.head_dim, batch_.kv_layout.type, heads.group, true) !=
             nullptr;
}

Status StepRunner::attention_few(const Step& step, const KvPlaces& kv) {
  const graph::HeadShape& heads = step.op->heads;
  const KvType type = batch_.kv_layout.type;
  ASSIGN_OR_RETURN(const View q, view(step.inputs[0]));
  ASSIGN_OR_RETURN(const View y, view(step.output));
  const int64_t n_rows = rows(step);
  const int64_t kv_heads = heads.n_heads / heads.group;
  // Two groups for each compute unit.
  const int64_t blocks = (most_keys() + kKvBlockTokens - 1) / kKvBlockTokens;
  const int64_t wanted = 2 * kernels_.compute_units() / (kv_heads * n_rows);
  const int64_t splits = std::clamp<int64_t>(wanted, 1, std::min(kMostSplits, blocks));
  ASSIGN_OR_RETURN(const Place partials, scratch_.floats(n_rows * heads.n_heads * splits *
                                                         (heads.head_dim + kSplitFloats)));
  ASSIGN_OR_RETURN(const Place counters, scratch_.zeros(queue_, kMostUnitRows * kv_heads));
  const Place batch = batch_data_.place();
  const bool together = y.buffer == q.buffer && batch.buffer == q.buffer &&
                        partials.buffer == q.buffer && counters.buffer == q.buffer;
  const auto beside = [&](cl_mem buffer) { return together ? nullptr : buffer; };
  Arguments arguments(kernels_.attention_few(heads.head_dim, type, heads.group, together),
                      launches_);
  arguments.buffer(q.buffer).place(q.begin).count(q.stride);
  arguments.buffer(kv.buffer).place(kv.first).place(kv.head_step).place(kv.values);
  arguments.buffer(beside(batch.buffer)).place(batch.floats()).count(batch_data_.places().rows);
  arguments.buffer(beside(y.buffer)).place(y.begin).count(y.stride);
  arguments.value(static_cast<cl_float>(heads.scale));
  arguments.buffer(beside(partials.buffer)).place(partials.floats()).count(splits);
  arguments.buffer(beside(counters.buffer)).place(counters.floats());
  LaunchSize size;
  size.global = {static_cast<size_t>(kv_heads * splits) * kAttentionGroup,
                 static_cast<size_t>(n_rows)};
  size.local = {kAttentionGroup, 1};
  return launch(queue_, arguments, size);
}

}  // namespace troika::device::opencl
