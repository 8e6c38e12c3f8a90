// Cheap operators of whole rows, which a device computes again instead of waiting for another's.
#pragma once

#include "troika/graph/graph.h"

namespace troika::plan {

// A norm is computed again with the residual additions of two joins before it, not more.
inline constexpr int kMostRecomputed = 2;

inline bool is_light(graph::OpKind kind) {
  using graph::OpKind;
  return kind == OpKind::kEmbed || kind == OpKind::kRopeTable || kind == OpKind::kRmsNorm ||
         kind == OpKind::kAdd || kind == OpKind::kGatherRows;
}

}  // namespace troika::plan
