// Products of one row through the integer matrix units of NVIDIA GPUs, as exact as in floats: the
// inputs become fixed-point numbers of 24 bits, with a scale for each 128, in three signed bytes
// ("limbs"), which are three columns of the matrix that the weights are multiplied with.
//
// Arguments as product_few. Weights in tiles (packed.cl). A warp takes every WARPS-th step of 128
// inputs of a tile of 16 outputs; a work-group takes every get_num_groups()-th tile, and loads AHEAD
// steps before it uses them.
//
// mma.m16n8k32: lane l holds rows l / 4 and l / 4 + 8 of the weights, column l / 4 of the inputs, and
// columns 2 (l % 4) and 2 (l % 4) + 1 of the sums.
//
// Local size: WARPS * 32. Global size: any number of groups.

#define LANES 32
#define TILE 16
#define STEP 128
#define STEPS (INPUTS / STEP)
#define LIMBS 3
// Limbs lie apart by this many bytes: no bank is met twice.
#define LIMB_BYTES (INPUTS + 16)
// The largest input of a step becomes this.
#define LARGEST 4194304.0f
// An integer below 2^22 added to the bits of this float makes it a float that is larger by it.
#define BIAS 12582912.0f
#define BIAS_BITS 0x4B400000
#define HIGH_NIBBLES 0xf0f0f0f0u
// Turns 16 q of a nibble q, as a byte, into 16 (q - 8), signed.
#define SIGNS 0x80808080u

float silu(float x) { return x / (1.0f + exp(-x)); }

// Weights are read once: they must not push the inputs out of the cache.
uint4 stream(__global const uint4 *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

float low_half(uint v) {
  float r;
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, a;}" : "=f"(r) : "r"(v));
  return r;
}
float high_half(uint v) {
  float r;
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, b;}" : "=f"(r) : "r"(v));
  return r;
}

void multiply(int *sums, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

uint exchange(uint value, int distance) {
  uint other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(other)
               : "r"(value), "r"(distance));
  return other;
}

// The steps that this warp will use, as limbs and scales; their sum of squares in all lanes. A step
// with a NaN or an infinity gets NaN as its scale.
float make_limbs(__global const float *x, int aligned, __global const float *gain, int has_gain,
                 __local char *limbs, __local float *scales) {
  const uint lane = get_local_id(0) % LANES;
  float squares = 0.0f;
  for (uint step = get_local_id(0) / LANES; step < STEPS; step += WARPS) {
    float4 v = load_four(x + step * STEP + lane * 4, aligned);
    squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    if (has_gain) v *= ((__global const float4 *)(gain + step * STEP))[lane];
    // As integers: a NaN is larger than all.
    const uint4 sizes = as_uint4(v) & 0x7fffffffu;
    uint most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
    for (int distance = 16; distance > 0; distance /= 2) most = max(most, exchange(most, distance));
    const float largest = as_float(most);
    const float factor = most == 0 ? 0.0f : LARGEST / largest;
    if (lane == 0) {
      scales[step] = most < 0x7f800000u ? largest / LARGEST : as_float(0x7fc00000);
    }
    const int4 whole = convert_int4_rte(v * factor);
    const int4 low = ((whole + 128) & 255) - 128;
    const int4 rest = (whole - low) >> 8;
    const int4 middle = ((rest + 128) & 255) - 128;
    const int4 high = (rest - middle) >> 8;
    // Even weights of a word of 8 are the low nibbles of its bytes, odd ones the high nibbles.
    __local char *to =
        limbs + step * STEP + lane % 8 / 2 * 32 + lane / 8 * 8 + lane % 2 * 2;
    vstore2((char2)(high.x, high.z), 0, to);
    vstore2((char2)(high.y, high.w), 0, to + 4);
    vstore2((char2)(middle.x, middle.z), 0, to + LIMB_BYTES);
    vstore2((char2)(middle.y, middle.w), 0, to + LIMB_BYTES + 4);
    vstore2((char2)(low.x, low.z), 0, to + 2 * LIMB_BYTES);
    vstore2((char2)(low.y, low.w), 0, to + 2 * LIMB_BYTES + 4);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    squares += as_float(exchange(as_uint(squares), distance));
  }
  return squares;
}

// Where a tile's weights begin.
struct Tile {
  __global const uint4 *quants;
  __global const uint4 *scales;
};

struct Tile find_tile(__global const uchar *w, ulong scales, uint tile) {
  struct Tile found;
  found.quants = (__global const uint4 *)w + (ulong)tile * STEPS * 64;
  found.scales = (__global const uint4 *)(w + scales) + (ulong)tile * STEPS * 8;
  return found;
}

// Item `item` of a work-group: GATED, the tiles of the first and the second matrix by turns.
#if GATED
#define FIND_TILE(item)                                                             \
  find_tile((item) % 2 == 0 ? w0 : w1, (item) % 2 == 0 ? scales0 : scales1,         \
            get_group_id(0) + (item) / 2 * get_num_groups(0))
#else
#define TILE_OF(item) (get_group_id(0) + (item) * get_num_groups(0))
#define FIND_TILE(item)                                                             \
  (TILE_OF(item) < tiles0            ? find_tile(w0, scales0, TILE_OF(item))        \
   : TILE_OF(item) < tiles0 + tiles1 ? find_tile(w1, scales1, TILE_OF(item) - tiles0) \
                                     : find_tile(w2, scales2, TILE_OF(item) - tiles0 - tiles1))
#endif

__kernel __attribute__((reqd_work_group_size(WARPS * LANES, 1, 1)))
void product_one(__global const float *x, ulong x_begin, uint x_stride,
                 __global const uchar *w0, ulong scales0, __global float *y0, ulong y0_begin,
                 uint n0,
                 __global const uchar *w1, ulong scales1, __global float *y1, ulong y1_begin,
                 uint n1,
                 __global const uchar *w2, ulong scales2, __global float *y2, ulong y2_begin,
                 uint n2,
                 uint4 y_strides,
                 __global const float *add, ulong add_begin, uint add_stride, int has_add,
                 __global const float *gain, float eps, int has_gain, uint k, uint m,
                 int aligned) {
  __local char limbs[LIMBS * LIMB_BYTES] __attribute__((aligned(16)));
  __local float input_scales[STEPS];
  __local float squares[WARPS];
  __local float partial[2][WARPS][TILE];
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

  const float sum = make_limbs(x + x_begin, aligned, gain, has_gain, limbs, input_scales);
  if (lane == 0) squares[warp] = sum;
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  __local const char *column = limbs + min(row, (uint)(LIMBS - 1)) * LIMB_BYTES + quarter * 32;

  float norm = 1.0f;
  float gate = 0.0f;
  int slot = 0;
  for (uint item = 0; item < items; ++item) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint first = warp; first < STEPS; first += WARPS * AHEAD) {
#pragma unroll
      for (int ahead = 0; ahead < AHEAD; ++ahead) {
        const uint step = first + ahead * WARPS;
        if (STEPS % (WARPS * AHEAD) != 0 && step >= STEPS) break;
        uint4 x_first = *(__local const uint4 *)(column + step * STEP);
        uint4 x_second = *(__local const uint4 *)(column + step * STEP + 16);
        if (row >= LIMBS) x_first = x_second = (uint4)0u;
        const float scale = input_scales[step];
        const uint4 a = upper[ahead];
        const uint4 b = lower[ahead];
        const uint4 f = factors[ahead];
        LOAD(ahead)
        const float4 f_upper =
            (float4)(low_half(f.x), high_half(f.x), low_half(f.y), high_half(f.y));
        const float4 f_lower =
            (float4)(low_half(f.z), high_half(f.z), low_half(f.w), high_half(f.w));
        float parts[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#define BLOCK(c, even, odd)                                                                   \
  {                                                                                           \
    int p[4] = {BIAS_BITS, BIAS_BITS, BIAS_BITS, BIAS_BITS};                                  \
    multiply(p, ((a.c << 4) & HIGH_NIBBLES) ^ SIGNS, ((b.c << 4) & HIGH_NIBBLES) ^ SIGNS,     \
             (a.c & HIGH_NIBBLES) ^ SIGNS, (b.c & HIGH_NIBBLES) ^ SIGNS, even, odd);          \
    parts[0] = fma(f_upper.c, as_float(p[0]) - BIAS, parts[0]);                               \
    parts[1] = fma(f_upper.c, as_float(p[1]) - BIAS, parts[1]);                               \
    parts[2] = fma(f_lower.c, as_float(p[2]) - BIAS, parts[2]);                               \
    parts[3] = fma(f_lower.c, as_float(p[3]) - BIAS, parts[3]);                               \
  }
        BLOCK(x, x_first.x, x_first.y)
        BLOCK(y, x_first.z, x_first.w)
        BLOCK(z, x_second.x, x_second.y)
        BLOCK(w, x_second.z, x_second.w)
#undef BLOCK
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
    if (lid < TILE) {
      if (item == 0 && has_gain) {
        float total = 0.0f;
        for (int w = 0; w < WARPS; ++w) total += squares[w];
        norm = 1.0f / sqrt(total / (float)INPUTS + eps);
      }
      float value = 0.0f;
      for (int w = 0; w < WARPS; ++w) value += partial[slot][w][lid];
      value *= 0.0625f * norm;
#if GATED
      if (item % 2 == 0) {
        gate = value;
      } else {
        const uint output = (get_group_id(0) + item / 2 * get_num_groups(0)) * TILE + lid;
        value *= silu(gate);
        if (has_add) value += add[add_begin + output];
        y0[y0_begin + output] = value;
      }
#else
      uint output = TILE_OF(item) * TILE + lid;
      if (has_add) value += add[add_begin + output];
      if (output < n0) {
        y0[y0_begin + output] = value;
      } else if (output < n0 + n1) {
        y1[y1_begin + output - n0] = value;
      } else {
        y2[y2_begin + output - n0 - n1] = value;
      }
#endif
    }
    slot ^= 1;
  }
}
