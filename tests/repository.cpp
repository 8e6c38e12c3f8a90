#include "tests/repository.h"

namespace troika {

std::string repository_path(std::string_view path) {
  return std::string(TROIKA_SOURCE_DIR "/").append(path);
}

}  // namespace troika
