// The shared kernels for one instruction set. Built with its own flags: everything here must have
// internal linkage (tests/check_kernel_symbols.sh), or the linker could choose this file's copy of
// an inline function for the whole program, which then fails on an older processor.
#if defined(__x86_64__)
#include "troika/device/cpu/kernels/tables.h"
#include "troika/device/cpu/kernels/vec_avx2.h"
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

constinit const KernelTable kAvx2Kernels = make_table("avx2");

}  // namespace troika::device::cpu
#endif
