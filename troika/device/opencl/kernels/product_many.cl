// Products of many rows on a GPU: y = x W^T, optionally + add. A work-group computes a tile of
// TILE_M rows by TILE_N outputs; each of its work-items ITEM_M by ITEM_N of them in registers. Both
// operands pass through local memory 32 inputs at a time, weights as floats.
//
// Local size: (TILE_M / ITEM_M) * (TILE_N / ITEM_N). Global size: that times the tiles along N, and
// the tiles along M.

#define GROUP ((TILE_M / ITEM_M) * (TILE_N / ITEM_N))
#define ITEMS_N (TILE_N / ITEM_N)
#define CHUNK 32
// Rows of the tiles are apart by this many floats: whole vectors, and no bank met twice.
#define STEP_M (TILE_M + 4)
#define STEP_N (TILE_N + 4)

// Inputs of a tile, 4 at a time, transposed. Neighbours take neighbouring rows, so that what they
// write lies side by side; of weights likewise.
void load_inputs(__global const float *x, uint x_stride, uint row, uint m, uint begin, uint k,
                 int aligned, __local float *tile) {
  for (uint i = get_local_id(0); i < TILE_M * CHUNK / 4; i += GROUP) {
    const uint r = i % TILE_M;
    const uint at = i / TILE_M * 4;
    float4 four = (float4)0.0f;
    if (row + r < m) {
      __global const float *from = x + (ulong)(row + r) * x_stride + begin + at;
      if (begin + at + 4 <= k) {
        four = load_four(from, aligned);
      } else {
        if (begin + at < k) four.x = from[0];
        if (begin + at + 1 < k) four.y = from[1];
        if (begin + at + 2 < k) four.z = from[2];
      }
    }
    tile[(at + 0) * STEP_M + r] = four.x;
    tile[(at + 1) * STEP_M + r] = four.y;
    tile[(at + 2) * STEP_M + r] = four.z;
    tile[(at + 3) * STEP_M + r] = four.w;
  }
}

void load_weights(__global const uchar *w, __global const uchar *scales, uint first, uint n,
                  uint begin, uint k, __local float *tile) {
#if BLOCKED
  const uint chunks = k / CHUNK;
  for (uint i = get_local_id(0); i < TILE_N * QUANT_WORDS / 2; i += GROUP) {
    const uint o = i % TILE_N;
    const uint pair = i / TILE_N;
    const ulong row = min(first + o, n - 1);
    const uint chunk = begin / CHUNK;
    __global const uint *quants = (__global const uint *)w;
#if TILED
    const uint words[2] = {quants[word_place(row, chunk, chunks, 2 * pair)],
                           quants[word_place(row, chunk, chunks, 2 * pair + 1)]};
#else
    const uint2 two = *(__global const uint2 *)(quants + word_place(row, chunk, chunks, 2 * pair));
    const uint words[2] = {two.x, two.y};
#endif
    const int per_pair = CHUNK / (QUANT_WORDS / 2);
    const float2 factors =
        chunk_factors(scales, scale_place(row, chunk, chunks), pair * per_pair / PART);
#pragma unroll
    for (int j = 0; j < per_pair; ++j) {
      tile[(pair * per_pair + j) * STEP_N + o] = factors.x * quant_float(words, j) + factors.y;
    }
  }
#else
  for (uint i = get_local_id(0); i < TILE_N * CHUNK; i += GROUP) {
    const uint o = i % TILE_N;
    const uint at = i / TILE_N;
    float value = 0.0f;
    if (begin + at < k) {
      value = plain_1(w + ((ulong)min(first + o, n - 1) * k + begin + at) * WEIGHT_BYTES);
    }
    tile[at * STEP_N + o] = value;
  }
#endif
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void product_many(__global const float *x, ulong x_begin, uint x_stride,
                  __global const uchar *w, ulong w_begin, ulong scales_begin,
                  __global float *y, ulong y_begin, uint y_stride,
                  __global const float *add, ulong add_begin, uint add_stride, int has_add,
                  uint n, uint k, uint m, int aligned) {
  __local float x_tile[CHUNK * STEP_M] __attribute__((aligned(16)));
  __local float w_tile[CHUNK * STEP_N] __attribute__((aligned(16)));
  const uint first = get_group_id(0) * TILE_N;
  const uint row = get_group_id(1) * TILE_M;
  const uint item_n = get_local_id(0) % ITEMS_N;
  const uint item_m = get_local_id(0) / ITEMS_N;
  x += x_begin;
  __global const uchar *scales = w + scales_begin;
  w += w_begin;
  float sums[ITEM_M][ITEM_N];
#pragma unroll
  for (int i = 0; i < ITEM_M; ++i) {
#pragma unroll
    for (int j = 0; j < ITEM_N; ++j) sums[i][j] = 0.0f;
  }
  for (uint begin = 0; begin < k; begin += CHUNK) {
    load_inputs(x, x_stride, row, m, begin, k, aligned, x_tile);
    load_weights(w, scales, first, n, begin, k, w_tile);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 8
    for (int i = 0; i < CHUNK; ++i) {
      float inputs[ITEM_M];
      float weights[ITEM_N];
      // Outputs and rows 4 by 4, so that neighbours read neighbouring vectors.
#pragma unroll
      for (int j = 0; j < ITEM_M; j += 4) {
        const float4 four =
            *(__local const float4 *)(x_tile + i * STEP_M + j * (TILE_M / ITEM_M) + item_m * 4);
        inputs[j] = four.x;
        inputs[j + 1] = four.y;
        inputs[j + 2] = four.z;
        inputs[j + 3] = four.w;
      }
#pragma unroll
      for (int j = 0; j < ITEM_N; j += 4) {
        const float4 four =
            *(__local const float4 *)(w_tile + i * STEP_N + j * ITEMS_N + item_n * 4);
        weights[j] = four.x;
        weights[j + 1] = four.y;
        weights[j + 2] = four.z;
        weights[j + 3] = four.w;
      }
#pragma unroll
      for (int a = 0; a < ITEM_M; ++a) {
#pragma unroll
        for (int b = 0; b < ITEM_N; ++b) sums[a][b] = fma(inputs[a], weights[b], sums[a][b]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int a = 0; a < ITEM_M; ++a) {
    const uint r = row + a / 4 * 4 * (TILE_M / ITEM_M) + item_m * 4 + a % 4;
    if (r >= m) continue;
#pragma unroll
    for (int b = 0; b < ITEM_N; ++b) {
      const uint output = first + b / 4 * 4 * ITEMS_N + item_n * 4 + b % 4;
      if (output >= n) continue;
      float value = sums[a][b];
      if (has_add) value += add[add_begin + (ulong)r * add_stride + output];
      y[y_begin + (ulong)r * y_stride + output] = value;
    }
  }
}
