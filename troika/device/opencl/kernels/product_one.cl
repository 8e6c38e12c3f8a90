// Products of one row through the integer matrix units of NVIDIA GPUs (units.cl), as exact as in
// floats: the inputs become fixed-point numbers of 24 bits, with a scale for each 128.
//
// Arguments as product_few. Weights in tiles (packed.cl). A warp takes every WARPS-th step of 128
// inputs of a tile of 16 outputs; a work-group takes every get_num_groups()-th tile, and loads AHEAD
// steps before it uses them: WARPS * AHEAD divides the steps. GAIN: there is a norm before the
// product. KV_BYTES, if not 0: the outputs are queries, keys and values; queries and keys are rotated,
// pairs of neighbours each, and keys and values written to the cache, which has elements of so many
// bytes, to the cell that stands in batch[place].
//
// What a launch costs beside its bytes is how long the first bytes are on their way: the inputs are
// asked for first, the weights behind them, and only then anything is computed.
//
// Local size: WARPS * 32. Global size: any number of groups.

#define STEPS (INPUTS / STEP)
#define ROUNDS (STEPS / WARPS)
// Limbs lie apart by this many bytes: no bank is met twice.
#define LIMB_BYTES (INPUTS + 16)
// The largest input of a step lies between 2^TOP and 127 / 64 times that, so that three limbs hold it.
#define TOP 22
// Its exponent: of larger ones that of the next power of two, of very small ones that of 2^-102.
#define EXPONENT(bits) max(((bits) + 0x20000u) >> 23, 25u)

float silu(float x) { return x / (1.0f + exp(-x)); }

uint exchange(uint value, int distance) {
  uint other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(other)
               : "r"(value), "r"(distance));
  return other;
}

float4 load_inputs(__global const float *from) {
  float4 v;
  asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}

// The sum of a value in all lanes.
float sum_of_lanes(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += as_float(exchange(as_uint(value), distance));
  }
  return value;
}

uint largest_of_lanes(uint value) {
  uint largest;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(value));
  return largest;
}

// Four inputs of each lane, a step, as limbs and a scale, which is a power of two. A step with a NaN
// or an infinity gets NaN as its scale.
void make_limbs(float4 v, uint step, __local char *limbs, __local float *scales) {
  const uint lane = get_local_id(0) % LANES;
  // As integers: a NaN is larger than all.
  const uint4 sizes = as_uint4(v) & 0x7fffffffu;
  const uint most = largest_of_lanes(max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
  const uint exponent = EXPONENT(most);
  if (lane == 0) {
    scales[step] = as_float(most < 0x7f800000u ? (exponent - TOP) << 23 : 0x7fc00000u);
  }
  const float factor = as_float((254u + TOP - exponent) << 23);
  // Digits from -128 to 127 are those from 0 to 255 of a number that is larger by 128 in each.
  const uint4 digits = (as_uint4(convert_int4_rte(v * factor)) + 0x808080u) ^ 0x808080u;
  const char4 x = as_char4(digits.x);
  const char4 y = as_char4(digits.y);
  const char4 z = as_char4(digits.z);
  const char4 w = as_char4(digits.w);
  // Even weights of a word of 8 are the low nibbles of its bytes, odd ones the high nibbles.
  __local char *to = limbs + step * STEP + lane % 8 / 2 * 32 + lane / 8 * 8 + lane % 2 * 2;
  vstore2((char2)(x.s2, z.s2), 0, to);
  vstore2((char2)(y.s2, w.s2), 0, to + 4);
  vstore2((char2)(x.s1, z.s1), 0, to + LIMB_BYTES);
  vstore2((char2)(y.s1, w.s1), 0, to + LIMB_BYTES + 4);
  vstore2((char2)(x.s0, z.s0), 0, to + 2 * LIMB_BYTES);
  vstore2((char2)(y.s0, w.s0), 0, to + 2 * LIMB_BYTES + 4);
}

// Where a tile's weights begin.
struct Tile {
  __global const uint4 *quants;
  __global const uint4 *scales;
};

struct Tile find_tile(__global const uchar *w, ulong begin, ulong scales, uint tile) {
  struct Tile found;
  found.quants = (__global const uint4 *)(w + begin) + (ulong)tile * STEPS * 64;
  found.scales = (__global const uint4 *)(w + scales) + (ulong)tile * STEPS * 8;
  return found;
}

// Item `item` of a work-group: GATED, the tiles of the first and the second matrix by turns.
#if GATED
#define FIND_TILE(item)                                                             \
  find_tile((item) % 2 == 0 ? w0 : w1, (item) % 2 == 0 ? w0_begin : w1_begin,       \
            (item) % 2 == 0 ? scales0 : scales1,                                      \
            get_group_id(0) + (item) / 2 * get_num_groups(0))
#else
#define TILE_OF(item) (get_group_id(0) + (item) * get_num_groups(0))
#define FIND_TILE(item)                                                             \
  (TILE_OF(item) < tiles0 ? find_tile(w0, w0_begin, scales0, TILE_OF(item))         \
   : TILE_OF(item) < tiles0 + tiles1                                                \
       ? find_tile(w1, w1_begin, scales1, TILE_OF(item) - tiles0)                   \
       : find_tile(w2, w2_begin, scales2, TILE_OF(item) - tiles0 - tiles1))
#endif

__kernel __attribute__((reqd_work_group_size(WARPS * LANES, 1, 1)))
void product_one(__global const float *x, ulong x_begin, uint x_stride,
                 __global const uchar *w0, ulong w0_begin, ulong scales0,
                 __global float *y0, ulong y0_begin, uint n0,
                 __global const uchar *w1, ulong w1_begin, ulong scales1,
                 __global float *y1, ulong y1_begin, uint n1,
                 __global const uchar *w2, ulong w2_begin, ulong scales2,
                 __global float *y2, ulong y2_begin, uint n2,
                 uint4 y_strides,
                 __global const float *add, ulong add_begin, uint add_stride, int has_add,
                 __global const float *gain, ulong gain_begin, float eps, int has_gain, uint k,
                 uint m, int aligned
#if KV_BYTES
                 , __global const float *table, ulong table_begin,
                 __global KV_ELEMENT *kv, ulong k_first, ulong head_step, ulong v_offset,
                 __global const int *batch, ulong place, uint head_dim, uint rope_dim
#endif
                 ) {
  __local char limbs[LIMBS * LIMB_BYTES] __attribute__((aligned(16)));
  __local float input_scales[STEPS];
  __local float squares[WARPS];
  __local float partial[2][WARPS][TILE];
#if TOGETHER
  y0 = y1 = y2 = (__global float *)x;
  add = x;
  w1 = w2 = w0;
  gain = (__global const float *)w0;
#if KV_BYTES
  table = x;
  batch = (__global const int *)x;
#endif
#endif
  const uint lid = get_local_id(0);
  const uint lane = lid % LANES;
  const uint warp = lid / LANES;
  const uint row = lane / 4;
  const uint quarter = lane % 4;
  const uint tiles0 = n0 / TILE;
#if GATED
  const uint group_tiles = (tiles0 - get_group_id(0) + get_num_groups(0) - 1) / get_num_groups(0);
  const uint items = 2 * group_tiles;
#else
  const uint tiles1 = n1 / TILE;
  const uint all_tiles = tiles0 + tiles1 + n2 / TILE;
  const uint items = (all_tiles - get_group_id(0) + get_num_groups(0) - 1) / get_num_groups(0);
#endif

  x += x_begin + warp * STEP + lane * 4;
  float4 inputs[ROUNDS];
#pragma unroll
  for (int i = 0; i < ROUNDS; ++i) inputs[i] = load_inputs(x + i * (WARPS * STEP));
#if GAIN
  gain += gain_begin + warp * STEP + lane * 4;
  float4 gains[ROUNDS];
#pragma unroll
  for (int i = 0; i < ROUNDS; ++i) gains[i] = load_inputs(gain + i * (WARPS * STEP));
#endif
  uint4 upper[AHEAD];
  uint4 lower[AHEAD];
  uint4 factors[AHEAD];
  uint next_item = 0;
  uint next_step = warp;
  struct Tile next = FIND_TILE(0);
#define LOAD(slot)                                             \
  if (next_item < items) {                                     \
    upper[slot] = stream(next.quants + next_step * 64 + lane); \
    lower[slot] = stream(next.quants + next_step * 64 + 32 + lane); \
    factors[slot] = stream(next.scales + next_step * 8 + row); \
    next_step += WARPS;                                        \
    if (next_step >= STEPS) {                                  \
      next_step = warp;                                        \
      ++next_item;                                             \
      if (next_item < items) next = FIND_TILE(next_item);      \
    }                                                          \
  }
#pragma unroll
  for (int slot = 0; slot < AHEAD; ++slot) { LOAD(slot) }

  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < ROUNDS; ++i) {
    float4 v = inputs[i];
#if GAIN
    sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    v *= gains[i];
#endif
    make_limbs(v, i * WARPS + warp, limbs, input_scales);
  }
#if GAIN
  sum = sum_of_lanes(sum);
  if (lane == 0) squares[warp] = sum;
#endif
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  // Columns from LIMBS on are of no interest: any will do.
  __local const char *column = limbs + min(row, (uint)(LIMBS - 1)) * LIMB_BYTES + quarter * 32;

  // m is 1.
  const uint nibbles = HIGH_NIBBLES + (m - 1);
  const uint signs = SIGNS + (m - 1);
  float norm = 1.0f;
  float gate = 0.0f;
  int slot = 0;
  for (uint item = 0; item < items; ++item) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#if GATED
    const uint output = (get_group_id(0) + item / 2 * get_num_groups(0)) * TILE + lane % TILE;
#else
    const uint output = TILE_OF(item) * TILE + lane % TILE;
#endif
    float residual = 0.0f;
    if (has_add && warp == 0) residual = add[add_begin + output];
#if KV_BYTES
    // Where the output is in its head, and the angle there: cosine and sine.
    const uint matrix = output < n0 ? 0 : output < n0 + n1 ? 1 : 2;
    const uint in_matrix = output - (matrix == 0 ? 0 : matrix == 1 ? n0 : n0 + n1);
    const uint dim = in_matrix % head_dim;
    float2 angle = (float2)(1.0f, 0.0f);
    uint cell = 0;
    if (warp == 0 && matrix < 2 && dim < rope_dim) angle = vload2(dim / 2, table + table_begin);
    if (warp == 0) cell = batch[place];
#endif
    for (uint first = warp; first < STEPS; first += WARPS * AHEAD) {
#pragma unroll
      for (int ahead = 0; ahead < AHEAD; ++ahead) {
        const uint step = first + ahead * WARPS;
        const uint4 x_first = *(__local const uint4 *)(column + step * STEP);
        const uint4 x_second = *(__local const uint4 *)(column + step * STEP + 16);
        const float scale = input_scales[step];
        const struct Unpacked weights =
            unpack(upper[ahead], lower[ahead], factors[ahead], nibbles, signs);
        // What was there is used up: nothing has to be moved away.
        LOAD(ahead)
        float parts[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        ADD_STEP(parts, weights, x_first, x_second)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] = fma(scale, parts[i], sums[i]);
      }
    }
    // Quarter 0 has the high and the middle limb, quarter 1 the low one.
    const float first_row = quarter == 0 ? fma(sums[0], 65536.0f, sums[1] * 256.0f) : sums[0];
    const float second_row = quarter == 0 ? fma(sums[2], 65536.0f, sums[3] * 256.0f) : sums[2];
    const float first_low = as_float(exchange(as_uint(first_row), 1));
    const float second_low = as_float(exchange(as_uint(second_row), 1));
    if (quarter == 0) {
      partial[slot][warp][row] = first_row + first_low;
      partial[slot][warp][row + 8] = second_row + second_low;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp == 0) {
#if GAIN
      if (item == 0) {
        const float total = sum_of_lanes(lane < WARPS ? squares[lane] : 0.0f);
        norm = 1.0f / sqrt(total / (float)INPUTS + eps);
      }
#endif
      // Each half of the lanes adds half of the warps.
      float value = 0.0f;
      for (uint w = lane / TILE; w < WARPS; w += 2) value += partial[slot][w][lane % TILE];
      value += as_float(exchange(as_uint(value), TILE));
      value *= 0.0625f * norm;
#if GATED
      if (item % 2 == 0) {
        gate = value;
      } else if (lane < TILE) {
        y0[y0_begin + output] = value * silu(gate) + residual;
      }
#elif KV_BYTES
      const float other = as_float(exchange(as_uint(value), 1));
      value = value * angle.x + (dim % 2 == 0 ? -other : other) * angle.y;
      const ulong block = cell / KV_BLOCK;
      const uint slot_of_key = cell % KV_BLOCK;
      const ulong head_begin = k_first + in_matrix / head_dim * head_step;
      if (lane < TILE && matrix == 0) {
        y0[y0_begin + output] = value;
      } else if (lane < TILE && matrix == 1) {
        STORE_KV(value, head_begin + (block * head_dim + dim) * KV_BLOCK + slot_of_key, kv);
      } else if (lane < TILE) {
        STORE_KV(value, head_begin + v_offset + (block * KV_BLOCK + slot_of_key) * head_dim + dim,
                 kv);
      }
#else
      if (lane < TILE) {
        value += residual;
        if (output < n0) {
          y0[y0_begin + output] = value;
        } else if (output < n0 + n1) {
          y1[y1_begin + output - n0] = value;
        } else {
          y2[y2_begin + output - n0 - n1] = value;
        }
      }
#endif
    }
    slot ^= 1;
  }
}
