// Attention by online softmax over the KV blocks of a sequence, in ascending order.
//
// What a query computes depends on its own position only: in every block it takes the keys that it
// sees, all 32 or the first few, with the same operations in the same order whichever other queries
// share the pass. Blocks that it does not see leave its state alone.

namespace troika::device::cpu {
namespace {

constexpr int kKeys = static_cast<int>(kKvBlockTokens);
constexpr int kKeyVecs = kKeys / kLanes;
// Dimensions of V that are summed at once; with kTileQueries queries they fill the registers.
constexpr int kStripVecs = kKeyVecs < 4 ? kKeyVecs : 4;
// Queries that take a block of K and V from the cache, one tile after another, before the next.
constexpr int64_t kPassQueries = 48;

// The state of one query in scratch: maximum and sum of the weights so far, then the sum of V.
constexpr int64_t kStateHeader = 16;

KERNEL_INLINE int64_t state_floats(int64_t head_dim) {
  return kStateHeader + (head_dim + 15) / 16 * 16;
}

struct KvF32 {
  using Element = float;
  static KERNEL_INLINE VF at(const float* p) { return load(p); }
  static KERNEL_INLINE VF first(const float* p, int n) { return load_first(p, n); }
};

struct KvF16 {
  using Element = uint16_t;
  static KERNEL_INLINE VF at(const uint16_t* p) {
    return load_f16(reinterpret_cast<const std::byte*>(p));
  }
  static KERNEL_INLINE VF first(const uint16_t* p, int n) {
    uint16_t lanes[kLanes] = {};
    std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof lanes[0]);
    return at(lanes);
  }
};

struct Query {
  const float* q;
  float* state;
};

// Weights of the first n_keys keys of a block (0 for the others), against the new maximum; the sums
// so far are to be multiplied by rescale.
template <class Kv, int queries>
KERNEL_INLINE void score(const Query* query, const typename Kv::Element* k, int64_t head_dim,
                         float scale, int n_keys, float (&weights)[queries][kKeys],
                         float (&rescale)[queries]) {
  VF s[queries][kKeyVecs];
  for (int q = 0; q < queries; ++q) {
    for (int v = 0; v < kKeyVecs; ++v) s[q][v] = zero();
  }
  const bool whole = n_keys == kKeys;
  for (int64_t d = 0; d < head_dim; ++d) {
    VF kv[kKeyVecs];
    for (int v = 0; v < kKeyVecs; ++v) {
      // Another device may be writing the keys behind the first n_keys.
      const int lanes = n_keys - v * kLanes;
      const auto* const from = k + d * kKeys + v * kLanes;
      kv[v] = whole || lanes >= kLanes ? Kv::at(from) : lanes > 0 ? Kv::first(from, lanes) : zero();
    }
    for (int q = 0; q < queries; ++q) {
      const VF x = splat(query[q].q[d]);
      for (int v = 0; v < kKeyVecs; ++v) s[q][v] = fma(x, kv[v], s[q][v]);
    }
  }
  for (int q = 0; q < queries; ++q) {
    float* const state = query[q].state;
    VF top = splat(state[0]);
    for (int v = 0; v < kKeyVecs; ++v) {
      s[q][v] =
          select_first(mul(s[q][v], splat(scale)), splat(-__builtin_inff()), n_keys - v * kLanes);
      top = max(s[q][v], top);
    }
    const float maximum = max_lane(top);
    VF total = zero();
    for (int v = 0; v < kKeyVecs; ++v) {
      const VF w = select_first(exp(sub(s[q][v], splat(maximum))), zero(), n_keys - v * kLanes);
      store(&weights[q][v * kLanes], w);
      total = add(total, w);
    }
    alignas(64) float change[kLanes];
    store(change, exp(splat(state[0] - maximum)));
    rescale[q] = change[0];
    state[0] = maximum;
    state[1] = state[1] * change[0] + sum(total);
  }
}

// Adds the weighted rows of V in dimensions d .. d + vecs * kLanes - 1, the last `lanes` of them.
template <class Kv, int queries, int vecs>
KERNEL_INLINE void add_values(const Query* query, const typename Kv::Element* v, int64_t head_dim,
                              int64_t d, int lanes, int n_keys,
                              const float (&weights)[queries][kKeys],
                              const float (&rescale)[queries]) {
  VF acc[queries][vecs];
  for (int q = 0; q < queries; ++q) {
    const VF factor = splat(rescale[q]);
    for (int c = 0; c < vecs; ++c) {
      acc[q][c] = mul(load(query[q].state + kStateHeader + d + c * kLanes), factor);
    }
  }
  const auto* row = v + d;
  for (int t = 0; t < n_keys; ++t, row += head_dim) {
    VF value[vecs];
    for (int c = 0; c < vecs; ++c) {
      value[c] = lanes == vecs * kLanes ? Kv::at(row + c * kLanes) : Kv::first(row, lanes);
    }
    for (int q = 0; q < queries; ++q) {
      const VF w = splat(weights[q][t]);
      for (int c = 0; c < vecs; ++c) acc[q][c] = fma(w, value[c], acc[q][c]);
    }
  }
  for (int q = 0; q < queries; ++q) {
    for (int c = 0; c < vecs; ++c) {
      store(query[q].state + kStateHeader + d + c * kLanes, acc[q][c]);
    }
  }
}

// One block for `queries` queries that all see its first n_keys keys.
template <class Kv, int queries>
void attend_tile(const Query* query, const typename Kv::Element* k, const typename Kv::Element* v,
                 int64_t head_dim, float scale, int n_keys) {
  alignas(64) float weights[queries][kKeys];
  float rescale[queries];
  score<Kv, queries>(query, k, head_dim, scale, n_keys, weights, rescale);
  int64_t d = 0;
  for (; d + kStripVecs * kLanes <= head_dim; d += kStripVecs * kLanes) {
    add_values<Kv, queries, kStripVecs>(query, v, head_dim, d, kStripVecs * kLanes, n_keys, weights,
                                        rescale);
  }
  for (; d < head_dim; d += kLanes) {
    const int lanes = head_dim - d < kLanes ? static_cast<int>(head_dim - d) : kLanes;
    add_values<Kv, queries, 1>(query, v, head_dim, d, lanes, n_keys, weights, rescale);
  }
}

template <class Kv, int queries>
void attend(const Query* query, int64_t n, const typename Kv::Element* k,
            const typename Kv::Element* v, int64_t head_dim, float scale, int n_keys) {
  for (; n >= queries; n -= queries, query += queries) {
    attend_tile<Kv, queries>(query, k, v, head_dim, scale, n_keys);
  }
  if constexpr (queries > 1) {
    if (n > 0) attend<Kv, queries - 1>(query, n, k, v, head_dim, scale, n_keys);
  }
}

// The queries of rows r0 .. r0 + n_rows - 1, heads g0 .. g0 + n_group - 1, with states in scratch.
KERNEL_INLINE void begin_queries(const AttentionArgs& args, int64_t r0, int64_t n_rows, int64_t g0,
                                 int64_t n_group, Query* queries) {
  const int64_t n_state = state_floats(args.head_dim);
  for (int64_t i = 0; i < n_rows * n_group; ++i) {
    queries[i].q = args.q + (r0 + i / n_group) * args.q_stride + (g0 + i % n_group) * args.head_dim;
    queries[i].state = args.scratch + i * n_state;
    std::memset(queries[i].state, 0, static_cast<size_t>(n_state) * sizeof(float));
    queries[i].state[0] = -__builtin_inff();
  }
}

KERNEL_INLINE void finish_queries(const AttentionArgs& args, int64_t r0, int64_t n_rows, int64_t g0,
                                  int64_t n_group, const Query* queries) {
  for (int64_t i = 0; i < n_rows * n_group; ++i) {
    float* out =
        args.out + (r0 + i / n_group) * args.out_stride + (g0 + i % n_group) * args.head_dim;
    const float* state = queries[i].state;
    for (int64_t d = 0; d < args.head_dim; ++d) out[d] = state[kStateHeader + d] / state[1];
  }
}

// One block for n_rows rows, the first of which sees `seen` of its keys (maybe none or more than
// there are), each further row one more.
template <class Kv>
void attend_block(const Query* queries, int64_t n_rows, int64_t n_group, int64_t seen,
                  const typename Kv::Element* k, const typename Kv::Element* v,
                  const AttentionArgs& args) {
  // Rows that see a part of the block go one by one, those that see all of it together.
  int64_t row = 0;
  for (; row < n_rows && seen + row < kKeys; ++row) {
    if (seen + row <= 0) continue;
    attend<Kv, kTileQueries>(queries + row * n_group, n_group, k, v, args.head_dim, args.scale,
                             static_cast<int>(seen + row));
  }
  attend<Kv, kTileQueries>(queries + row * n_group, (n_rows - row) * n_group, k, v, args.head_dim,
                           args.scale, kKeys);
}

KERNEL_INLINE void to_f32(const uint16_t* halves, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += kLanes) store(y + i, KvF16::at(halves + i));
}

// All blocks for rows r0 .. r0 + n_rows - 1.
template <class Kv>
void attend_rows(const AttentionArgs& args, int64_t r0, int64_t n_rows) {
  Query queries[kPassQueries];
  const int64_t block_elements = kKvBlockTokens * args.head_dim;
  // Groups of more than kPassQueries heads go through in parts.
  for (int64_t g0 = 0; g0 < args.n_group; g0 += kPassQueries) {
    const int64_t n_group = args.n_group - g0 < kPassQueries ? args.n_group - g0 : kPassQueries;
    begin_queries(args, r0, n_rows, g0, n_group, queries);
    const int64_t first = args.first_position + r0;
    for (int64_t b = 0; b * kKeys < first + n_rows; ++b) {
      const int64_t offset = args.block_table[b] * block_elements;
      const auto* k = static_cast<const typename Kv::Element*>(args.k) + offset;
      const auto* v = static_cast<const typename Kv::Element*>(args.v) + offset;
      const int64_t seen = first + 1 - b * kKeys;
      if constexpr (sizeof(typename Kv::Element) == 2) {
        // Many queries read a block many times: convert it once, which changes no value.
        if (n_rows * n_group > 2 * kTileQueries) {
          float* const k_floats = args.scratch + kPassQueries * state_floats(args.head_dim);
          float* const v_floats = k_floats + block_elements;
          to_f32(k, block_elements, k_floats);
          to_f32(v, block_elements, v_floats);
          attend_block<KvF32>(queries, n_rows, n_group, seen, k_floats, v_floats, args);
          continue;
        }
      }
      attend_block<Kv>(queries, n_rows, n_group, seen, k, v, args);
    }
    finish_queries(args, r0, n_rows, g0, n_group, queries);
  }
}

void attention(const AttentionArgs& args) {
  const int64_t fit = args.n_group < kPassQueries ? kPassQueries / args.n_group : 1;
  for (int64_t r = 0; r < args.n_rows; r += fit) {
    const int64_t n = args.n_rows - r < fit ? args.n_rows - r : fit;
    if (args.kv_type == KvType::kF32) {
      attend_rows<KvF32>(args, r, n);
    } else {
      attend_rows<KvF16>(args, r, n);
    }
  }
}

int64_t attention_scratch_floats(int64_t /*n_group*/, int64_t head_dim) {
  // States, and one block of K and V as floats.
  return kPassQueries * state_floats(head_dim) + 2 * kKvBlockTokens * head_dim;
}

void kv_write(const KvWriteArgs& args) {
  if (args.kv_type == KvType::kF32) {
    float* k = static_cast<float*>(args.k_block) + args.slot;
    float* v = static_cast<float*>(args.v_block) + args.slot * args.head_dim;
    for (int64_t d = 0; d < args.head_dim; ++d) k[d * kKeys] = args.k[d];
    std::memcpy(v, args.v, static_cast<size_t>(args.head_dim) * sizeof(float));
    return;
  }
  uint16_t* k = static_cast<uint16_t*>(args.k_block) + args.slot;
  uint16_t* v = static_cast<uint16_t*>(args.v_block) + args.slot * args.head_dim;
  for (int64_t d = 0; d < args.head_dim; d += kLanes) {
    const int n = args.head_dim - d < kLanes ? static_cast<int>(args.head_dim - d) : kLanes;
    uint16_t halves[kLanes];
    store_f16(reinterpret_cast<std::byte*>(halves), load_first(args.k + d, n));
    for (int i = 0; i < n; ++i) k[(d + i) * kKeys] = halves[i];
    store_f16(reinterpret_cast<std::byte*>(halves), load_first(args.v + d, n));
    std::memcpy(v + d, halves, static_cast<size_t>(n) * sizeof halves[0]);
  }
}

}  // namespace
}  // namespace troika::device::cpu
