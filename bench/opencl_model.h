// The whole opencl device: the conformance catalogue, and a model through the executor.
#pragma once

#include <string>

namespace troika::bench {

// Both print. `device` as after "opencl:".
void conformance(const std::string& device_name);
// Tokens per second, one sequence and many, and the kernels of each pass; `read_gbps` is what the
// device reads at.
void whole_model(const std::string& device_name, const std::string& path, double read_gbps);

}  // namespace troika::bench
