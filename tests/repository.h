// Where the repository lies, for tests that read files of it.
#pragma once

#include <string>
#include <string_view>

namespace troika {

// "tests/models/q4_0-small.gguf" as an absolute path.
std::string repository_path(std::string_view path);

}  // namespace troika
