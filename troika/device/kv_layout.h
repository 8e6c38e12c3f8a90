// How keys and values lie in memory: the layout that every device with paged attention reads.
//
// The cache of one layer is a pool of blocks of kKvBlockTokens tokens. For each KV head:
//   K [block][head_dim][kKvBlockTokens]   (token fastest: scores of a block are computed lane by
//   lane) V [block][kKvBlockTokens][head_dim]
// Blocks with neighbouring numbers are neighbours in memory, so that a sequence with contiguous
// blocks has one contiguous window per head, for devices that know no block tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troika::device {

// Tokens in one block: four AVX2 or two AVX-512 vectors of floats, and the usual tile of an NPU.
inline constexpr int64_t kKvBlockTokens = 32;

enum class KvType { kF32, kF16 };
std::string_view to_string(KvType type);  // "f32", "f16"

inline constexpr int64_t kv_type_bytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

struct KvLayout {
  KvType type = KvType::kF32;
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t n_blocks = 0;

  // Elements of one block of one head, K or V alike.
  int64_t block_elements() const { return kKvBlockTokens * head_dim; }
  int64_t head_bytes() const { return n_blocks * block_elements() * kv_type_bytes(type); }
  // K and V of all layers and heads.
  int64_t total_bytes() const { return 2 * n_layers * n_kv_heads * head_bytes(); }
  // Byte offset of block 0 of K (which = 0) or V (which = 1) of a head.
  int64_t head_offset(int64_t layer, int64_t kv_head, int which) const {
    return ((layer * n_kv_heads + kv_head) * 2 + which) * head_bytes();
  }
};

// A block of the cache that was copied over another one.
struct KvBlockCopy {
  int32_t from = 0;
  int32_t to = 0;
  uint64_t number = 0;  // of all copies in this cache, from 1
};

// Copies of blocks that were made in shared memory, in order: a device whose keys and values lie in
// memory of its own makes up for those that it has not seen.
struct KvCopies {
  std::span<const KvBlockCopy> list;
  // Those up to this number are not listed any more: whoever took part in the passes since then has
  // made up for them.
  uint64_t settled = 0;
};

}  // namespace troika::device
