// What compile() does so that no pass has to wait for a compiler.
#include <algorithm>

#include "troika/device/opencl/device.h"
#include "troika/device/opencl/first_launch.h"

namespace troika::device::opencl {

using graph::OpKind;

namespace {

// Whether the weights of a step lie in one buffer, as those of most steps do.
bool weights_together(const Step& step) {
  const cl_mem first = step.products[0].weight->buffer();
  return (step.norm == nullptr || step.weight->buffer() == first) &&
         std::all_of(step.products.begin(), step.products.end(),
                     [&](const Product& product) { return product.weight->buffer() == first; });
}

}  // namespace

Status OpenClDevice::tune_units(const Step& step, int64_t max_rows) {
  KernelSet::OneProduct product{0, step.products[0].slice.k, step.silu != nullptr,
                                step.norm != nullptr};
  for (const Product& one : step.products) product.outputs += one.slice.n;
  if (session_.facts.matrix_units) {
    RETURN_IF_ERROR(tuner_.tune_one(product));
    RETURN_IF_ERROR(warm_one(step, product));
  }
  product.gated = false;
  product.gain = false;
  if (kernels_.emulates_units()) return tuner_.tune_rows(product, 8);
  for (const int64_t rows : {int64_t{8}, int64_t{16}, kMostUnitRows}) {
    if (max_rows > rows / 2) RETURN_IF_ERROR(tuner_.tune_rows(product, rows));
  }
  return {};
}

Status OpenClDevice::warm_one(const Step& step, const KernelSet::OneProduct& product) {
  const auto shape = kernels_.one_shape(product);
  if (!shape) return {};
  if (step.kv_write == nullptr) {
    const auto kernel = kernels_.one_product(product.inputs, *shape, product.gated, product.gain,
                                             std::nullopt, weights_together(step));
    return warm_kernel(kernel, shape->group());
  }
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    const auto kernel = kernels_.one_product(product.inputs, *shape, false, product.gain, type,
                                             weights_together(step));
    RETURN_IF_ERROR(warm_kernel(kernel, shape->group()));
  }
  return {};
}

Status OpenClDevice::warm(const Step& step, int64_t max_rows) {
  RETURN_IF_ERROR(warm_rows(step));
  if (step.kv_write != nullptr) RETURN_IF_ERROR(warm(*step.kv_write, max_rows));
  if (step.kind == StepKind::kProducts) {
    const model::TensorType type = step.op->weight->type;
    if (session_.device_class == DeviceClass::kGpu) {
      RETURN_IF_ERROR(tuner_.tune(type, step.products[0].slice.n, step.products[0].slice.k));
    }
    const bool is_tiled = step.products[0].weight->tiled;
    if (is_tiled) RETURN_IF_ERROR(tune_units(step, max_rows));
    for (const int64_t rows : {int64_t{1}, std::min(max_rows, int64_t{2}), max_rows}) {
      if (session_.device_class == DeviceClass::kHost) {
        RETURN_IF_ERROR(warm_kernel(kernels_.host_product(type, KernelSet::host_shape(type, rows)),
                                    kHostGroup));
      } else if (rows <= kMostFewRows) {
        const bool gated = step.silu != nullptr;
        RETURN_IF_ERROR(kernels_.few_product(type, kernels_.few_shape(type, rows, gated), gated,
                                             is_tiled, weights_together(step)));
      } else {
        RETURN_IF_ERROR(kernels_.many_product(
            type, kernels_.many_shape(type, rows, step.products[0].weight->n), is_tiled));
      }
    }
  } else if (step.op->kind == OpKind::kEmbed) {
    return warm_kernel(kernels_.embed(step.op->weight->type, step.weight->tiled), kItemGroup);
  }
  return {};
}

// On a processor launched, too, in a group of `local` work-items.
Status OpenClDevice::warm_kernel(const Result<cl_kernel>& kernel, int64_t local) {
  if (!kernel) return tl::unexpected<Error>(kernel.error());
  if (session_.device_class == DeviceClass::kGpu) return {};
  if (!launched_.insert(*kernel).second) return {};
  return first_launch(session_.context.get(), session_.queue.get(), *kernel,
                      {static_cast<size_t>(local), 1});
}

// The kernels of rows that a step needs.
Status OpenClDevice::warm_rows(const Step& step) {
  const auto row_kernel = [this](const char* name, int64_t local = kItemGroup) {
    return warm_kernel(kernels_.row_kernel(name), local);
  };
  if (step.norm != nullptr) RETURN_IF_ERROR(row_kernel("rms_norm", 1));
  if (step.silu != nullptr) RETURN_IF_ERROR(row_kernel("silu_mul"));
  switch (step.op->kind) {
    case OpKind::kRmsNorm:
      return row_kernel("rms_norm", 1);
    case OpKind::kRope:
      return row_kernel("rope");
    case OpKind::kSiluMul:
      return row_kernel("silu_mul");
    case OpKind::kAdd:
      return row_kernel("add");
    case OpKind::kConcat:
      return row_kernel("copy_columns");
    case OpKind::kGatherRows:
      return row_kernel("gather_rows");
    case OpKind::kAttention:
    case OpKind::kKvWrite:
      // The type of the cache is not known yet.
      for (const KvType type : {KvType::kF32, KvType::kF16}) {
        RETURN_IF_ERROR(step.op->kind == OpKind::kKvWrite
                            ? warm_kernel(kernels_.row_kernel("kv_write", type), kItemGroup)
                            : warm_kernel(kernels_.attention(step.op->heads.head_dim, type), 1));
        if (step.op->kind == OpKind::kAttention) {
          kernels_.attention_few(step.op->heads.head_dim, type, step.op->heads.group, true);
        }
      }
      return {};
    case OpKind::kMatMul:
    case OpKind::kEmbed:
    case OpKind::kRopeTable:
      break;
  }
  return {};
}

}  // namespace troika::device::opencl
