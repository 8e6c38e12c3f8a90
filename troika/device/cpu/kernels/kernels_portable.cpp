// The kernels for any processor, and the truth that the others are compared with.

#include "troika/device/cpu/kernels/tables.h"
#include "troika/device/cpu/kernels/vec_portable.h"
// Each of these builds on those before it.
// clang-format off
#include "troika/device/cpu/kernels/weights.inl"
#include "troika/device/cpu/kernels/weights_k.inl"
#include "troika/device/cpu/kernels/dequantize.inl"
#include "troika/device/cpu/kernels/ahead.inl"
#include "troika/device/cpu/kernels/matmul_dot.inl"
#include "troika/device/cpu/kernels/matmul_packed.inl"
#include "troika/device/cpu/kernels/elementwise.inl"
#include "troika/device/cpu/kernels/attention.inl"
#include "troika/device/cpu/kernels/table.inl"
// clang-format on

namespace troika::device::cpu {

constinit const KernelTable kPortableKernels = make_table("portable");

}  // namespace troika::device::cpu
