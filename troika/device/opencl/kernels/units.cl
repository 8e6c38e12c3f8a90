// What product_one.cl and product_rows.cl share: they multiply through the integer matrix units of
// NVIDIA GPUs. Stands before them.
//
// Weights lie in tiles of TILE outputs, STEP inputs of one after the other (packed.cl). Inputs are
// fixed-point numbers in three signed bytes ("limbs"), which are three columns of the matrix that the
// weights are multiplied with.
//
// EMULATE: the same arithmetic without such units, and without PTX, through local memory, for tests.

#define LANES 32
#define TILE 16
#define STEP 128
#define LIMBS 3
// An integer below 2^22 added to the bits of this float makes it a float that is larger by it.
#define BIAS 12582912.0f
#define BIAS_BITS 0x4B400000
#define HIGH_NIBBLES 0xf0f0f0f0u
// Turns 16 q of a nibble q, as a byte, into 16 (q - 8), signed.
#define SIGNS 0x80808080u

#if EMULATE
// What GROUP work-items, all of a work-group, exchange.
struct Room {
  uint4 firsts[GROUP];
  uint2 seconds[GROUP];
};
#define ROOM_PARAMETER , __local struct Room *room
#define ROOM , room

uint4 stream(__global const uint4 *from) { return *from; }

float2 halves(uint word) { return vload_half2(0, (const half *)&word); }

int dot_bytes(uint a, uint b) {
  const char4 x = as_char4(a);
  const char4 y = as_char4(b);
  return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

void multiply(int *sums, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1 ROOM_PARAMETER) {
  const uint lid = get_local_id(0);
  const uint warp = lid / LANES;
  const uint row = lid % LANES / 4;
  const uint quarter = lid % 4;
  barrier(CLK_LOCAL_MEM_FENCE);
  room->firsts[lid] = (uint4)(a0, a1, a2, a3);
  room->seconds[lid] = (uint2)(b0, b1);
  barrier(CLK_LOCAL_MEM_FENCE);
  sums[0] = sums[1] = sums[2] = sums[3] = BIAS_BITS;
  for (uint i = 0; i < 4; ++i) {
    const uint4 first = room->firsts[warp * LANES + row * 4 + i];
    const uint2 left = room->seconds[warp * LANES + (2 * quarter) * 4 + i];
    const uint2 right = room->seconds[warp * LANES + (2 * quarter + 1) * 4 + i];
    sums[0] += dot_bytes(first.x, left.x) + dot_bytes(first.z, left.y);
    sums[1] += dot_bytes(first.x, right.x) + dot_bytes(first.z, right.y);
    sums[2] += dot_bytes(first.y, left.x) + dot_bytes(first.w, left.y);
    sums[3] += dot_bytes(first.y, right.x) + dot_bytes(first.w, right.y);
  }
}
#else
#define ROOM_PARAMETER
#define ROOM

// Weights are read once: they must not push what is used again out of the cache.
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

// mma.m16n8k32: lane l holds rows l / 4 and l / 4 + 8 of the weights, column l / 4 of the inputs, and
// columns 2 (l % 4) and 2 (l % 4) + 1 of the sums, which begin as BIAS_BITS.
void multiply(int *sums, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(BIAS_BITS));
}
#endif

// A step of a tile as it is multiplied: 16 times the weights of a lane's two rows, those of even and
// of odd numbers, and their scales.
struct Unpacked {
  uint4 upper_even;
  uint4 lower_even;
  uint4 upper_odd;
  uint4 lower_odd;
  float4 upper_scales;
  float4 lower_scales;
};

// `nibbles` and `signs` are HIGH_NIBBLES and SIGNS: of numbers that the compiler does not know,
// `& nibbles ^ signs` is one instruction.
struct Unpacked unpack(uint4 upper, uint4 lower, uint4 scales, uint nibbles, uint signs) {
  struct Unpacked w;
  w.upper_even = ((upper << 4u) & nibbles) ^ signs;
  w.lower_even = ((lower << 4u) & nibbles) ^ signs;
  w.upper_odd = (upper & nibbles) ^ signs;
  w.lower_odd = (lower & nibbles) ^ signs;
  w.upper_scales = (float4)(halves(scales.x), halves(scales.y));
  w.lower_scales = (float4)(halves(scales.z), halves(scales.w));
  return w;
}

// Adds the products of 32 inputs of a step, the words `even` and `odd` of a lane's column; `c` says
// which of the weights.
#define ADD_BLOCK(sums, weights, c, even, odd)                                    \
  {                                                                               \
    int p[4];                                                                     \
    multiply(p, weights.upper_even.c, weights.lower_even.c, weights.upper_odd.c,  \
             weights.lower_odd.c, even, odd ROOM);                                \
    sums[0] = fma(weights.upper_scales.c, as_float(p[0]) - BIAS, sums[0]);        \
    sums[1] = fma(weights.upper_scales.c, as_float(p[1]) - BIAS, sums[1]);        \
    sums[2] = fma(weights.lower_scales.c, as_float(p[2]) - BIAS, sums[2]);        \
    sums[3] = fma(weights.lower_scales.c, as_float(p[3]) - BIAS, sums[3]);        \
  }
// Of all 128: `first` and `second` are the lane's column.
#define ADD_STEP(sums, weights, first, second)      \
  {                                                 \
    ADD_BLOCK(sums, weights, x, first.x, first.y)   \
    ADD_BLOCK(sums, weights, y, first.z, first.w)   \
    ADD_BLOCK(sums, weights, z, second.x, second.y) \
    ADD_BLOCK(sums, weights, w, second.z, second.w) \
  }
