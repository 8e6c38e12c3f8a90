#include "troika/device/opencl/buildable.h"

namespace troika::device::opencl {
namespace {

using graph::Op;
using graph::OpKind;

// Rows of a product that goes through local memory, and too few outputs for large tiles.
constexpr int64_t kManyRows = 64;
constexpr int64_t kFewOutputs = 64;

std::string kind_of(const Op& op) {
  const std::string name(to_string(op.kind));
  if (op.kind == OpKind::kAttention) return fmt::format("{} of {}", name, op.heads.head_dim);
  if (op.kind == OpKind::kMatMul || op.kind == OpKind::kEmbed) {
    return fmt::format("{} of {}", name, model::traits(op.weight->type).name);
  }
  return name;
}

Status status_of(const Result<cl_kernel>& kernel) {
  if (kernel) return {};
  return tl::unexpected<Error>(kernel.error());
}

}  // namespace

Status Buildable::build_product(model::TensorType type) {
  if (kernels_.device_class() == DeviceClass::kHost) {
    RETURN_IF_ERROR(kernels_.host_product(type, KernelSet::host_shape(type, 1)));
    return status_of(kernels_.host_product(type, KernelSet::host_shape(type, kManyRows)));
  }
  const FewShape few = kernels_.few_shape(type, 1, false);
  RETURN_IF_ERROR(kernels_.few_product(type, few, false, false, true));
  return status_of(
      kernels_.many_product(type, kernels_.many_shape(type, kManyRows, kFewOutputs), false));
}

Status Buildable::build(const Op& op) {
  const auto row_kernel = [this](const char* name) { return status_of(kernels_.row_kernel(name)); };
  switch (op.kind) {
    case OpKind::kMatMul:
      return build_product(op.weight->type);
    case OpKind::kEmbed:
      return status_of(kernels_.embed(op.weight->type, false));
    case OpKind::kAttention:
      return status_of(kernels_.attention(op.heads.head_dim, KvType::kF32));
    case OpKind::kKvWrite:
      return row_kernel("kv_write");
    case OpKind::kRmsNorm:
      return row_kernel("rms_norm");
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
    case OpKind::kRopeTable:
      break;
  }
  return {};
}

bool Buildable::builds(const Op& op, std::string* refused) {
  const std::lock_guard lock(mutex_);
  const std::string kind = kind_of(op);
  const auto found = known_.find(kind);
  if (found != known_.end()) return found->second;
  const Status built = build(op);
  if (!built) *refused = fmt::format("{}: {}", kind, built.error().message);
  return known_.emplace(kind, built.has_value()).first->second;
}

}  // namespace troika::device::opencl
