// The contents of a KV cache in plain order, and their way to and from the layout that devices
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "troika/device/kv_layout.h"

namespace troika::device::conformance {

// [layer][kv head][K, V][block][token][dim], whatever the layout.
struct KvCells {
  KvLayout layout;
  std::vector<float> values;

  // Of the first dimension.
  size_t index(int64_t layer, int64_t head, int which, int64_t block, int64_t slot) const;
};

std::vector<float> load_cells(const KvLayout& layout, const std::byte* cache);
void store_cells(const KvCells& cells, std::byte* cache);

}  // namespace troika::device::conformance
