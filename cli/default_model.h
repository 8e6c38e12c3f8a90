// Which model file is meant.
#pragma once

#include <string>

#include "troika/base/result.h"

namespace troika::cli {

inline constexpr const char* kDefaultModel = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

// `given`, or the default model: below the working folder, else below the project that the program
// was built in. kNotFound with what to do if it is in neither place.
Result<std::string> model_path(const std::string& given);

}  // namespace troika::cli
