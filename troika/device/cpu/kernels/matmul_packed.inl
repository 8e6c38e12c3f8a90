// y = x W^T for many rows: a register tile of outer products over dequantized, packed weights.
//
// The order of summation is that of matmul_dot.inl. There a lane of a vector is one residue of k
// modulo kLanes; here lanes are outputs, and the residues are taken one after another: for each the
// tile adds its products in ascending k, and the partial tiles are added in the order of sum().
// Packing therefore sorts k by residue, in the order in which the tree takes them.

namespace troika::device::cpu {
namespace {

constexpr int kTileOutputs = kTileVecs * kLanes;
// Packed x of one block of rows stays below this: 1 MB, of which a core's L2 gets a good part.
constexpr int64_t kPackedXFloats = 224 * 1024;

KERNEL_INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// The i-th residue in the order of the tree: i with its bits reversed.
KERNEL_INLINE int residue_at(int i) {
  int r = 0;
  for (int b = 0; b < kLaneBits; ++b) r |= ((i >> b) & 1) << (kLaneBits - 1 - b);
  return r;
}

// Floats from one residue's stream to the next. The spare ones take what the last vector store
// writes too much, and keep the streams of a large K from sharing cache sets.
KERNEL_INLINE int64_t x_stream(int64_t steps) { return steps * kTileRows + 16; }
KERNEL_INLINE int64_t w_stream(int64_t steps) { return steps * kTileOutputs + 16; }

struct PackedSizes {
  int64_t steps;       // of one residue in the largest chunk
  int64_t row_tiles;   // register tiles in one block of rows
  int64_t most_tiles;  // the same, for any number of rows up to this one
  int64_t tile_floats() const { return kLanes * x_stream(steps); }
  int64_t w_floats() const { return round_up(kLanes * w_stream(steps), 16); }
  // Fewer rows in one block may be more than more rows in several.
  int64_t most_x_floats() const { return most_tiles * tile_floats(); }
};

KERNEL_INLINE PackedSizes packed_sizes(int64_t m, int64_t k) {
  PackedSizes sizes;
  sizes.steps = (lesser(k, kChunk) + kLanes - 1) / kLanes;
  const int64_t tiles = (m + kTileRows - 1) / kTileRows;
  const int64_t fit = kPackedXFloats / (kLanes * x_stream(sizes.steps));
  const int64_t blocks = (tiles + fit - 1) / fit;
  sizes.row_tiles = (tiles + blocks - 1) / blocks;
  sizes.most_tiles = lesser(tiles, fit);
  return sizes;
}

// Rows of one register tile; missing rows are zero.
void pack_x(const float* x, int64_t stride, int64_t n_rows, int64_t kc, int64_t steps, float* out) {
  for (int r0 = 0; r0 < kTileRows; r0 += kLanes) {
    for (int64_t s = 0; s * kLanes < kc; ++s) {
      const int lanes = static_cast<int>(lesser(kc - s * kLanes, kLanes));
      VF v[kLanes];
      for (int r = 0; r < kLanes; ++r) {
        const bool present = r0 + r < n_rows && r0 + r < kTileRows;
        const float* p = x + (r0 + r) * stride + s * kLanes;
        v[r] = !present ? zero() : lanes == kLanes ? load(p) : load_first(p, lanes);
      }
      transpose(v);
      for (int i = 0; i < kLanes; ++i) {
        store(out + i * x_stream(steps) + s * kTileRows + r0, v[residue_at(i)]);
      }
    }
  }
}

// Up to kTileOutputs rows of weights, kc from k0 on; missing outputs are zero.
template <TensorType type>
void pack_weights(const std::byte* w, int64_t stride, int64_t n, int64_t kc, int64_t steps,
                  float* out) {
  using W = Weights<type>;
  alignas(64) float rows[kLanes][W::kBlock];
  for (int g = 0; g < kTileVecs; ++g) {
    for (int64_t k = 0; k < kc; k += W::kBlock) {
      const int64_t count = lesser(kc - k, W::kBlock);
      for (int r = 0; r < kLanes; ++r) {
        if (g * kLanes + r < n) {
          const std::byte* p = w + (g * kLanes + r) * stride + k / W::kBlock * W::kBytes;
          dequantize<type>(p, count, rows[r]);
        } else {
          for (int i = 0; i < W::kBlock / kLanes; ++i) store(rows[r] + i * kLanes, zero());
        }
      }
      for (int i = 0; i * kLanes < count; ++i) {
        VF v[kLanes];
        for (int r = 0; r < kLanes; ++r) v[r] = load(rows[r] + i * kLanes);
        transpose(v);
        float* p = out + (k / kLanes + i) * kTileOutputs + g * kLanes;
        for (int j = 0; j < kLanes; ++j) store(p + j * w_stream(steps), v[residue_at(j)]);
      }
    }
  }
}

struct Tile {
  alignas(64) float at[kTileRows][kTileOutputs];
};

// The sums of one chunk for a register tile, in result.at.
void multiply_tile(const float* x, const float* w, int64_t kc, int64_t steps, Tile& result) {
  Tile partial[kLaneBits + 1];
  for (int i = 0; i < kLanes; ++i) {
    VF acc[kTileRows][kTileVecs];
    for (int r = 0; r < kTileRows; ++r) {
      for (int c = 0; c < kTileVecs; ++c) acc[r][c] = zero();
    }
    const float* xs = x + i * x_stream(steps);
    const float* ws = w + i * w_stream(steps);
    for (int64_t k = residue_at(i); k < kc; k += kLanes) {
      VF wv[kTileVecs];
      for (int c = 0; c < kTileVecs; ++c) wv[c] = load(ws + c * kLanes);
      for (int r = 0; r < kTileRows; ++r) {
        const VF xv = splat(xs[r]);
        for (int c = 0; c < kTileVecs; ++c) acc[r][c] = fma(xv, wv[c], acc[r][c]);
      }
      xs += kTileRows;
      ws += kTileOutputs;
    }
    // Complete subtrees end here: as many as i has trailing ones.
    int level = 0;
    for (; ((i >> level) & 1) != 0; ++level) {
      for (int r = 0; r < kTileRows; ++r) {
        for (int c = 0; c < kTileVecs; ++c) {
          acc[r][c] = add(load(&partial[level].at[r][c * kLanes]), acc[r][c]);
        }
      }
    }
    Tile& target = level == kLaneBits ? result : partial[level];
    for (int r = 0; r < kTileRows; ++r) {
      for (int c = 0; c < kTileVecs; ++c) store(&target.at[r][c * kLanes], acc[r][c]);
    }
  }
}

void store_tile(const MatMulArgs& args, int64_t m0, int64_t n0, bool first, const Tile& tile) {
  const int64_t n_rows = lesser(args.m - m0, kTileRows);
  const int64_t n_outputs = lesser(args.n - n0, kTileOutputs);
  for (int64_t r = 0; r < n_rows; ++r) {
    float* y = args.y + (m0 + r) * args.y_stride + n0;
    const float* before = y;
    if (first) {
      before = args.add == nullptr ? nullptr : args.add + (m0 + r) * args.add_stride + n0;
    }
    for (int64_t c = 0; c < n_outputs; c += kLanes) {
      const int lanes = static_cast<int>(lesser(n_outputs - c, kLanes));
      VF v = load(&tile.at[r][c]);
      if (lanes == kLanes) {
        if (before != nullptr) v = add(load(before + c), v);
        store(y + c, v);
      } else {
        if (before != nullptr) v = add(load_first(before + c, lanes), v);
        store_first(y + c, v, lanes);
      }
    }
  }
}

template <TensorType type>
void matmul_packed(const MatMulArgs& args) {
  const PackedSizes sizes = packed_sizes(args.m, args.k);
  const int64_t steps = sizes.steps;
  float* const packed_w = args.scratch;
  float* const packed_x = args.scratch + sizes.w_floats();
  const int64_t block_rows = sizes.row_tiles * kTileRows;
  Tile tile;
  for (int64_t m0 = 0; m0 < args.m; m0 += block_rows) {
    const int64_t m1 = lesser(m0 + block_rows, args.m);
    for (int64_t k0 = 0; k0 < args.k; k0 += kChunk) {
      const int64_t kc = lesser(args.k - k0, kChunk);
      float* x_tile = packed_x;
      for (int64_t m = m0; m < m1; m += kTileRows, x_tile += sizes.tile_floats()) {
        pack_x(args.x + m * args.x_stride + k0, args.x_stride, m1 - m, kc, steps, x_tile);
      }
      const std::byte* w = args.w + k0 / Weights<type>::kBlock * Weights<type>::kBytes;
      for (int64_t n = 0; n < args.n; n += kTileOutputs) {
        pack_weights<type>(w + n * args.w_stride, args.w_stride, args.n - n, kc, steps, packed_w);
        x_tile = packed_x;
        for (int64_t m = m0; m < m1; m += kTileRows, x_tile += sizes.tile_floats()) {
          multiply_tile(x_tile, packed_w, kc, steps, tile);
          store_tile(args, m, n, k0 == 0, tile);
        }
      }
    }
  }
}

int64_t matmul_scratch_floats(int64_t m, int64_t k) {
  if (m <= kMaxDotRows) return 0;
  const PackedSizes sizes = packed_sizes(m, k);
  return sizes.w_floats() + sizes.most_x_floats();
}

template <TensorType type>
void matmul_as(const MatMulArgs& args) {
  if (args.m <= kMaxDotRows) {
    matmul_dot<type>(args);
  } else {
    matmul_packed<type>(args);
  }
}

void matmul(TensorType type, const MatMulArgs& args) {
  switch (type) {
    case TensorType::kF32:
      return matmul_as<TensorType::kF32>(args);
    case TensorType::kF16:
      return matmul_as<TensorType::kF16>(args);
    case TensorType::kBF16:
      return matmul_as<TensorType::kBF16>(args);
    case TensorType::kQ8_0:
      return matmul_as<TensorType::kQ8_0>(args);
    case TensorType::kQ4_0:
      return matmul_as<TensorType::kQ4_0>(args);
    case TensorType::kQ4_1:
      return matmul_as<TensorType::kQ4_1>(args);
    case TensorType::kQ4_K:
      return matmul_as<TensorType::kQ4_K>(args);
    case TensorType::kQ6_K:
      return matmul_as<TensorType::kQ6_K>(args);
  }
}

}  // namespace
}  // namespace troika::device::cpu
