// The architectures that can be built: one file each, one line each in architectures.cpp.
#pragma once

#include <span>
#include <string_view>

#include "troika/graph/graph.h"

namespace troika::graph {

struct Architecture {
  std::string_view name;  // general.architecture in GGUF
  Result<Graph> (*build)(const model::Model& model);
};

std::span<const Architecture> architectures();

Result<Graph> build_llama(const model::Model& model);

}  // namespace troika::graph
