#include "troika/graph/arch/architectures.h"

namespace troika::graph {

std::span<const Architecture> architectures() {
  static constexpr Architecture kArchitectures[] = {
      {"llama", build_llama},
  };
  return kArchitectures;
}

}  // namespace troika::graph
