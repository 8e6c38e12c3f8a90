// The whole opencl device: the conformance catalogue, and a model through the executor.
#pragma once

#include <string>

namespace troika::bench {

// Both print. `device` as after "opencl:".
void conformance(const std::string& device_name);
// Tokens per second, one sequence and many.
void whole_model(const std::string& device_name, const std::string& path);

}  // namespace troika::bench
