#include "troika/device/conformance/kv_cells.h"

#include <cstring>

#include "troika/model/quantize.h"

namespace troika::device::conformance {
namespace {

// Calls visit(plain index, byte offset in the layout) for every element of the cache.
template <class Visit>
void for_each_cell(const KvLayout& layout, Visit visit) {
  const int64_t size = kv_type_bytes(layout.type);
  size_t plain = 0;
  for (int64_t head = 0; head < layout.n_layers * layout.n_kv_heads; ++head) {
    for (int which = 0; which < 2; ++which) {
      const int64_t base = layout.head_offset(0, head, which);
      for (int64_t block = 0; block < layout.n_blocks; ++block) {
        for (int64_t t = 0; t < kKvBlockTokens; ++t) {
          for (int64_t d = 0; d < layout.head_dim; ++d) {
            const int64_t in_block = which == 0 ? d * kKvBlockTokens + t : t * layout.head_dim + d;
            visit(plain++, base + (block * layout.block_elements() + in_block) * size);
          }
        }
      }
    }
  }
}

}  // namespace

size_t KvCells::index(int64_t layer, int64_t head, int which, int64_t block, int64_t slot) const {
  const int64_t heads = (layer * layout.n_kv_heads + head) * 2 + which;
  const int64_t token = (heads * layout.n_blocks + block) * kKvBlockTokens + slot;
  return static_cast<size_t>(token * layout.head_dim);
}

std::vector<float> load_cells(const KvLayout& layout, const std::byte* cache) {
  std::vector<float> values(static_cast<size_t>(layout.total_bytes() / kv_type_bytes(layout.type)));
  for_each_cell(layout, [&](size_t plain, int64_t offset) {
    if (layout.type == KvType::kF32) {
      std::memcpy(&values[plain], cache + offset, sizeof(float));
    } else {
      uint16_t half = 0;
      std::memcpy(&half, cache + offset, sizeof half);
      values[plain] = model::f16_to_f32(half);
    }
  });
  return values;
}

void store_cells(const KvCells& cells, std::byte* cache) {
  for_each_cell(cells.layout, [&](size_t plain, int64_t offset) {
    const float value = cells.values[plain];
    if (cells.layout.type == KvType::kF32) {
      std::memcpy(cache + offset, &value, sizeof value);
    } else {
      const uint16_t half = model::f32_to_f16(value);
      std::memcpy(cache + offset, &half, sizeof half);
    }
  });
}

}  // namespace troika::device::conformance
