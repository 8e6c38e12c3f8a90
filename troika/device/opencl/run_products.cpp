#include "troika/device/opencl/step_runner.h"

namespace troika::device::opencl {

Status StepRunner::products(const Step& step) {
  const int64_t m = rows(step);
  const bool is_host = kernels_.device_class() == DeviceClass::kHost;
  ProductTask task;
  task.type = step.op->weight->type;
  task.rows = m;
  task.launches = launches_;
  if (step.add >= 0) {
    task.has_add = true;
    ASSIGN_OR_RETURN(task.add, view(step.add));
  }
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
  if (step.silu == nullptr) return {};
  return element_wise("silu_mul", {step.products[0].output, step.products[1].output}, step.output,
                      m);
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
  if (task.rows == 1 && task.is_tiled()) {
    const auto shape = kernels_.one_shape(task.one_product());
    if (shape) return launch_one(queue_, kernels_, *shape, task);
  }
  return launch_few(queue_, kernels_, kernels_.few_shape(task.type, task.rows, task.gated), task);
}

}  // namespace troika::device::opencl
