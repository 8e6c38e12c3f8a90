// Data files that the build puts into the program, so that it needs none of them when it runs.
#pragma once

#include <string_view>

namespace troika {

// cmake/troika.cmake, troika_embed_json(), makes the lists of them.
struct EmbeddedJson {
  std::string_view name;  // of the file, without .json
  const std::string_view* json = nullptr;
};

}  // namespace troika
