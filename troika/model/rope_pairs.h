// Which dimensions of a head RoPE rotates together.
#pragma once

#include <cstdint>

namespace troika::model {

enum class RopePairs : uint8_t {
  kAdjacent,  // (0,1), (2,3), ...: the llama architecture in GGUF
  kHalves,    // (0, d/2), (1, d/2 + 1), ...: "NeoX" order
};

}  // namespace troika::model
