#include "troika/device/opencl/step_runner.h"

namespace troika::device::opencl {

Status StepRunner::products(const Step& step) {
  ProductTask task;
  task.type = step.op->weight->type;
  task.rows = rows(step);
  task.launches = launches_;
  RETURN_IF_ERROR(queue_products(step, task));
  return step.kv_write == nullptr || task.kv ? Status() : run(*step.kv_write);
}

Status StepRunner::queue_products(const Step& step, ProductTask& task) {
  const int64_t m = task.rows;
  const bool is_host = kernels_.device_class() == DeviceClass::kHost;
  if (step.add >= 0) {
    task.has_add = true;
    ASSIGN_OR_RETURN(task.add, view(step.add));
  }
  const auto units = is_host ? std::nullopt : unit_shape(step, m);
  if (units) return by_units(step, task, *units);
  if (!is_host && m <= kMostFewRows) return few(step, task);
  if (step.norm != nullptr) {
    RETURN_IF_ERROR(norm(*step.norm, *step.weight, step.normed, step.inputs[0], m));
  }
  ASSIGN_OR_RETURN(task.x, view(step.inputs[0]));
  for (const Product& product : step.products) {
    ASSIGN_OR_RETURN(const View y, view(product.output));
    task.outs = {{product.weight.get(), y}};
    RETURN_IF_ERROR(is_host
                        ? launch_host(queue_, kernels_, task)
                        : launch_many(queue_, kernels_,
                                      kernels_.many_shape(task.type, m, product.weight->n), task));
  }
  return silu(step, m);
}

Status StepRunner::silu(const Step& step, int64_t m) {
  if (step.silu == nullptr) return {};
  return element_wise("silu_mul", {step.products[0].output, step.products[1].output}, step.output,
                      m);
}

// Some rows through matrix units, where they were found to be right and fast.
std::optional<RowsShape> StepRunner::unit_shape(const Step& step, int64_t m) const {
  if (m > kMostUnitRows || !step.products[0].weight->tiled) return std::nullopt;
  KernelSet::OneProduct product{0, step.products[0].slice.k, false};
  for (const Product& one : step.products) product.outputs += one.slice.n;
  return kernels_.rows_shape(product, m);
}

Status StepRunner::by_units(const Step& step, ProductTask& task, const RowsShape& shape) {
  ASSIGN_OR_RETURN(task.x, view(step.norm == nullptr ? step.inputs[0] : step.normed));
  if (step.norm != nullptr) {
    task.gain = step.weight.get();
    task.eps = step.norm->eps;
  }
  for (const Product& product : step.products) {
    ASSIGN_OR_RETURN(const View y, view(product.output));
    task.outs.push_back({product.weight.get(), y});
  }
  ASSIGN_OR_RETURN(const Place scratch,
                   scratch_.floats(limb_floats(shape.rows, step.products[0].slice.k)));
  RETURN_IF_ERROR(launch_rows(queue_, kernels_, shape, task, scratch));
  return silu(step, task.rows);
}

Result<KvTarget> StepRunner::kv_target(const Step& write) {
  const graph::HeadShape& heads = write.op->heads;
  KvTarget target;
  ASSIGN_OR_RETURN(target.kv, kv_places(*write.op, heads.first_head));
  ASSIGN_OR_RETURN(target.table, view(write.key_table));
  target.batch = batch_data_.place();
  target.cell = batch_data_.places().keys;
  target.head_dim = heads.head_dim;
  target.rope_dim = write.key_rope->heads.rope_dim;
  return target;
}

// All products of the step, the norm before and what comes behind, in one launch.
Status StepRunner::few(const Step& step, ProductTask& task) {
  ASSIGN_OR_RETURN(task.x, view(step.norm == nullptr ? step.inputs[0] : step.normed));
  if (step.norm != nullptr) {
    task.gain = step.weight.get();
    task.eps = step.norm->eps;
  }
  task.gated = step.silu != nullptr;
  for (const Product& product : step.products) {
    ASSIGN_OR_RETURN(const View y, view(task.gated ? step.output : product.output));
    task.outs.push_back({product.weight.get(), y});
  }
  if (task.rows == 1 && task.is_tiled() && is_aligned(task.x)) {
    const auto shape = kernels_.one_shape(task.one_product());
    if (shape && step.kv_write != nullptr) {
      ASSIGN_OR_RETURN(task.outs[0].y, view(step.kv_write->rotated_query));
      ASSIGN_OR_RETURN(task.kv, kv_target(*step.kv_write));
    }
    if (shape) return launch_one(queue_, kernels_, *shape, task);
  }
  return launch_few(queue_, kernels_, kernels_.few_shape(task.type, task.rows, task.gated), task);
}

}  // namespace troika::device::opencl
