// The shared kernels for AArch64, where Advanced SIMD is part of every processor.
#if defined(__aarch64__)
#include "troika/device/cpu/kernels/tables.h"
#include "troika/device/cpu/kernels/vec_neon.h"
// Each of these builds on those before it.
// clang-format off
#include "troika/device/cpu/kernels/exp.inl"
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

constinit const KernelTable kNeonKernels = make_table("neon");

}  // namespace troika::device::cpu
#endif
