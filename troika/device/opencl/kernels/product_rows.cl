// Products of some rows through the integer matrix units of NVIDIA GPUs, as exact as in floats:
// product_one.cl for up to ROWS rows, whose limbs (limbs.cl) are the columns of one matrix, 3 to a
// row. Weights in tiles (packed.cl). A warp computes a tile of 16 outputs; the warps of a work-group
// share the limbs, 128 inputs at a time. Up to three matrices stand side by side.
//
// Sums of a column are kept apart until the end, so that the bytes' products are added without
// loss, 32 at a time as integers and then as floats with the weights' scales.
//
// The limbs lie `limbs_begin` bytes behind the scales. TOGETHER as in product_few.cl, with outputs
// where the scales are.
//
// EMULATE: the same arithmetic without matrix units, through local memory, for tests.
//
// Local size: WARPS * 32. Global size: groups of WARPS tiles over all matrices, times that.

#define LANES 32
#define TILE 16
#define STEP 128
#define STEPS (INPUTS / STEP)
#define COLUMNS (3 * ROWS)
#define COLUMN_TILES (COLUMNS / 8)
#define GROUP (WARPS * LANES)
// Vectors of 16 bytes of a column's step, and from one column to the next: no bank is met twice.
#define STEP_VECTORS (STEP / 16)
#define COLUMN_VECTORS (STEP_VECTORS + 1)
// An integer below 2^22 added to the bits of this float makes it a float that is larger by it.
#define BIAS 12582912.0f
#define BIAS_BITS 0x4B400000
#define HIGH_NIBBLES 0xf0f0f0f0u
// Turns 16 q of a nibble q, as a byte, into 16 (q - 8), signed.
#define SIGNS 0x80808080u

#if EMULATE
uint4 stream(__global const uint4 *from) { return *from; }

// The two halves of a word.
float2 halves(uint word) { return vload_half2(0, (const half *)&word); }

int dot_bytes(uint a, uint b) {
  const char4 x = as_char4(a);
  const char4 y = as_char4(b);
  return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// What mma.m16n8k32 does, with sums that begin as BIAS_BITS: lane l holds rows l / 4 and l / 4 + 8 of
// the first matrix, column l / 4 of the second, and columns 2 (l % 4) and 2 (l % 4) + 1 of the sums.
#define MULTIPLY(sums, a0, a1, a2, a3, b0, b1)                                          \
  {                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                       \
    firsts[lid] = (uint4)(a0, a1, a2, a3);                                              \
    seconds[lid] = (uint2)(b0, b1);                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                       \
    sums[0] = sums[1] = sums[2] = sums[3] = BIAS_BITS;                                  \
    for (uint i = 0; i < 4; ++i) {                                                      \
      const uint4 first = firsts[warp * LANES + row * 4 + i];                           \
      const uint2 left = seconds[warp * LANES + (2 * quarter) * 4 + i];                 \
      const uint2 right = seconds[warp * LANES + (2 * quarter + 1) * 4 + i];            \
      sums[0] += dot_bytes(first.x, left.x) + dot_bytes(first.z, left.y);               \
      sums[1] += dot_bytes(first.x, right.x) + dot_bytes(first.z, right.y);             \
      sums[2] += dot_bytes(first.y, left.x) + dot_bytes(first.w, left.y);               \
      sums[3] += dot_bytes(first.y, right.x) + dot_bytes(first.w, right.y);             \
    }                                                                                   \
  }
#else
// Weights are read once: they must not push the limbs out of the cache.
uint4 stream(__global const uint4 *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// The two halves of a word.
float2 halves(uint word) {
  float2 r;
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
      : "=f"(r.x), "=f"(r.y)
      : "r"(word));
  return r;
}

#define MULTIPLY(sums, a0, a1, a2, a3, b0, b1)                                             \
  asm volatile(                                                                            \
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "                                   \
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"                          \
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])                         \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(BIAS_BITS));
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void product_rows(__global const float *scales, ulong scales_begin, ulong limbs_begin,
                  __global const uchar *w0, ulong w0_begin, ulong scales0,
                  __global float *y0, ulong y0_begin, uint n0,
                  __global const uchar *w1, ulong w1_begin, ulong scales1,
                  __global float *y1, ulong y1_begin, uint n1,
                  __global const uchar *w2, ulong w2_begin, ulong scales2,
                  __global float *y2, ulong y2_begin, uint n2,
                  uint4 y_strides,
                  __global const float *add, ulong add_begin, uint add_stride, int has_add,
                  uint m) {
  // Limbs of a step; at the end the sums of a warp.
  __local uint4 staged[COLUMNS * COLUMN_VECTORS];
#if EMULATE
  __local uint4 firsts[GROUP];
  __local uint2 seconds[GROUP];
#endif
#if TOGETHER
  y0 = y1 = y2 = (__global float *)scales;
  add = scales;
  w1 = w2 = w0;
#endif
  scales += scales_begin;
  const uint lid = get_local_id(0);
  const uint lane = lid % LANES;
  const uint warp = lid / LANES;
  const uint row = lane / 4;
  const uint quarter = lane % 4;
  const uint tiles0 = n0 / TILE;
  const uint tiles1 = n1 / TILE;
  const uint tiles2 = n2 / TILE;
  const uint tiles = tiles0 + tiles1 + tiles2;
  // The last group may have fewer: its warps that are left repeat the last tile.
  const uint mine = get_group_id(0) * WARPS + warp;
  uint tile = min(mine, tiles - 1);
  __global const uchar *weights = w0 + w0_begin;
  __global const uchar *weight_scales = w0 + scales0;
  if (tile >= tiles0 + tiles1) {
    tile -= tiles0 + tiles1;
    weights = w2 + w2_begin;
    weight_scales = w2 + scales2;
  } else if (tile >= tiles0) {
    tile -= tiles0;
    weights = w1 + w1_begin;
    weight_scales = w1 + scales1;
  }
  __global const uint4 *quants = (__global const uint4 *)weights + (ulong)tile * STEPS * 64 + lane;
  __global const uint4 *factors =
      (__global const uint4 *)weight_scales + (ulong)tile * STEPS * 8 + row;
  __global const uint4 *limbs = (__global const uint4 *)((__global const char *)scales + limbs_begin);

  float sums[COLUMN_TILES][4];
#pragma unroll
  for (int t = 0; t < COLUMN_TILES; ++t) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[t][i] = 0.0f;
  }
  for (uint step = 0; step < STEPS; ++step) {
    const uint4 a = stream(quants + step * 64);
    const uint4 b = stream(quants + step * 64 + 32);
    const uint4 f = stream(factors + step * 8);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < COLUMNS * STEP_VECTORS; i += GROUP) {
      const uint column = i / STEP_VECTORS;
      const uint vector = i % STEP_VECTORS;
      staged[column * COLUMN_VECTORS + vector] =
          limbs[(ulong)column * (INPUTS / 16) + step * STEP_VECTORS + vector];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float4 f_upper = (float4)(halves(f.x), halves(f.y));
    const float4 f_lower = (float4)(halves(f.z), halves(f.w));
#if !EMULATE
#pragma unroll
#endif
    for (int t = 0; t < COLUMN_TILES; ++t) {
      __local const uint4 *column = staged + (t * 8 + row) * COLUMN_VECTORS + quarter * 2;
      const uint4 x_first = column[0];
      const uint4 x_second = column[1];
#define BLOCK(c, even, odd)                                                                    \
  {                                                                                            \
    int p[4];                                                                                  \
    MULTIPLY(p, ((a.c << 4) & HIGH_NIBBLES) ^ SIGNS, ((b.c << 4) & HIGH_NIBBLES) ^ SIGNS,      \
             (a.c & HIGH_NIBBLES) ^ SIGNS, (b.c & HIGH_NIBBLES) ^ SIGNS, even, odd)            \
    sums[t][0] = fma(f_upper.c, as_float(p[0]) - BIAS, sums[t][0]);                            \
    sums[t][1] = fma(f_upper.c, as_float(p[1]) - BIAS, sums[t][1]);                            \
    sums[t][2] = fma(f_lower.c, as_float(p[2]) - BIAS, sums[t][2]);                            \
    sums[t][3] = fma(f_lower.c, as_float(p[3]) - BIAS, sums[t][3]);                            \
  }
      BLOCK(x, x_first.x, x_first.y)
      BLOCK(y, x_first.z, x_first.w)
      BLOCK(z, x_second.x, x_second.y)
      BLOCK(w, x_second.z, x_second.w)
#undef BLOCK
    }
  }

  // One warp after the other leaves its sums, and all join the limbs of its rows.
  __local float *shared = (__local float *)staged;
  for (uint w = 0; w < WARPS; ++w) {
    const uint whose = get_group_id(0) * WARPS + w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp == w) {
#pragma unroll
      for (int t = 0; t < COLUMN_TILES; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          shared[(t * 8 + 2 * quarter + i % 2) * TILE + row + i / 2 * 8] = sums[t][i];
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint count = whose < tiles ? min(m, (uint)ROWS) * TILE : 0;
    for (uint i = lid; i < count; i += GROUP) {
      const uint r = i / TILE;
      __local const float *from = shared + 3 * r * TILE + i % TILE;
      const float high_parts = fma(from[0], 65536.0f, from[TILE] * 256.0f);
      float value = (high_parts + from[2 * TILE]) * scales[r];
      const uint output = whose * TILE + i % TILE;
      if (has_add) value += add[add_begin + (ulong)r * add_stride + output];
      if (output < n0) {
        y0[y0_begin + (ulong)r * y_strides.x + output] = value;
      } else if (output < n0 + n1) {
        y1[y1_begin + (ulong)r * y_strides.y + output - n0] = value;
      } else {
        y2[y2_begin + (ulong)r * y_strides.z + output - n0 - n1] = value;
      }
    }
  }
}
