// The tables of all instruction sets; each is defined where its processor family is the target.
#pragma once

#include "troika/device/cpu/kernels/kernels.h"

namespace troika::device::cpu {

extern const KernelTable kPortableKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kNeonKernels;

}  // namespace troika::device::cpu
