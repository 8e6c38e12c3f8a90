// A kernel's first launch, before it is needed.
#pragma once

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"
#include "troika/device/opencl/stream.h"

namespace troika::device::opencl {

// Launches a kernel that, with zero as every count, computes nothing, in one work-group of size
// `local`, and waits for it. PoCL only now compiles it, for groups of that size, which may take
// seconds: a pass that waited for it would look as if it hung.
Status first_launch(cl_context context, cl_command_queue queue, cl_kernel kernel,
                    const std::array<size_t, 2>& local);

}  // namespace troika::device::opencl
