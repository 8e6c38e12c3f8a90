// Products of some rows through the integer matrix units of NVIDIA GPUs, as exact as in floats:
// product_one.cl for up to ROWS rows, whose limbs (limbs.cl) are the columns of one matrix, 3 to a
// row (units.cl). A warp computes a tile of 16 outputs; the warps of a work-group share the limbs,
// 128 inputs at a time. Up to three matrices stand side by side.
//
// Sums of a column are kept apart until the end, so that the bytes' products are added without
// loss, 32 at a time as integers and then as floats with the weights' scales.
//
// The limbs lie `limbs_begin` bytes behind the scales. TOGETHER as in product_few.cl, with outputs
// where the scales are.
//
// Local size: WARPS * 32. Global size: groups of WARPS tiles over all matrices, times that.

#define STEPS (INPUTS / STEP)
#define COLUMNS (LIMBS * ROWS)
#define COLUMN_TILES (COLUMNS / 8)
// Vectors of 16 bytes of a column's step, and from one column to the next: no bank is met twice.
#define STEP_VECTORS (STEP / 16)
#define COLUMN_VECTORS (STEP_VECTORS + 1)

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
  __local struct Room rooms;
  __local struct Room *room = &rooms;
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
    const uint4 upper = stream(quants + step * 64);
    const uint4 lower = stream(quants + step * 64 + 32);
    const uint4 factor = stream(factors + step * 8);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < COLUMNS * STEP_VECTORS; i += GROUP) {
      const uint column = i / STEP_VECTORS;
      const uint vector = i % STEP_VECTORS;
      staged[column * COLUMN_VECTORS + vector] =
          limbs[(ulong)column * (INPUTS / 16) + step * STEP_VECTORS + vector];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const struct Unpacked unpacked = unpack(upper, lower, factor, HIGH_NIBBLES, SIGNS);
#if !EMULATE
#pragma unroll
#endif
    for (int t = 0; t < COLUMN_TILES; ++t) {
      __local const uint4 *column = staged + (t * 8 + row) * COLUMN_VECTORS + quarter * 2;
      const uint4 x_first = column[0];
      const uint4 x_second = column[1];
      ADD_STEP(sums[t], unpacked, x_first, x_second)
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
