// Stored weights, 32 in a row: how each format is read. Compiled before products and rows with
// -D WEIGHT=<GGUF type id> and, on a GPU, -D PACKED=1.
//
// Plain: as the file has them. Packed (weights.cpp): for quantized formats all quants of the matrix,
// a row's chunks of 32 one after another, and behind them the scales; nibbles in the order of their
// weights, bytes of Q8_0 with 128 added, those of Q6_K with their 32.

#define F32 0
#define F16 1
#define Q4_0 2
#define Q4_1 3
#define Q8_0 8
#define Q4_K 12
#define Q6_K 14
#define BF16 30

#if WEIGHT == F32 || WEIGHT == F16 || WEIGHT == BF16
#define BLOCKED 0
#else
#define BLOCKED 1
#endif

// Stored blocks of 256 weights, which are 8 chunks; all others have 32.
#if WEIGHT == Q4_K || WEIGHT == Q6_K
#define BLOCK_CHUNKS 8
#else
#define BLOCK_CHUNKS 1
#endif

#if WEIGHT == F32
#define WEIGHT_BYTES 4
#else
#define WEIGHT_BYTES 2
#endif

#if WEIGHT == Q4_0
#define BLOCK_BYTES 18
#elif WEIGHT == Q4_1
#define BLOCK_BYTES 20
#elif WEIGHT == Q8_0
#define BLOCK_BYTES 34
#elif WEIGHT == Q4_K
#define BLOCK_BYTES 144
#elif WEIGHT == Q6_K
#define BLOCK_BYTES 210
#else
#define BLOCK_BYTES (32 * WEIGHT_BYTES)
#endif

// Two halves as floats. vload_half is some twenty instructions where a processor's runtime has no
// other way. What is not finite comes out above 65504, the largest half.
float2 halves_at(__global const uchar *place) {
  const int2 halves = convert_int2(vload2(0, (__global const short *)place));
  const int2 bits = (halves << 13) & (int2)0x8fffe000;
  const float2 finite = as_float2(bits) * 0x1p112f;
  return select(finite, as_float2(bits | (int2)0x7f800000), fabs(finite) >= (float2)65536.0f);
}

float half_at(__global const uchar *place) {
  const int bits = ((int)*(__global const short *)place << 13) & 0x8fffe000;
  const float finite = as_float(bits) * 0x1p112f;
  return fabs(finite) >= 65536.0f ? as_float(bits | 0x7f800000) : finite;
}

#if !BLOCKED
float8 plain_8(__global const uchar *w) {
#if WEIGHT == F32
  return vload8(0, (__global const float *)w);
#elif WEIGHT == F16
  return vload_half8(0, (__global const half *)w);
#else
  return as_float8(convert_uint8(vload8(0, (__global const ushort *)w)) << 16);
#endif
}

float plain_1(__global const uchar *w) {
#if WEIGHT == F32
  return *(__global const float *)w;
#elif WEIGHT == F16
  return half_at(w);
#else
  return as_float((uint)*(__global const ushort *)w << 16);
#endif
}
#endif

__global const uchar *block_of(__global const uchar *row, uint chunk) {
  return row + (ulong)(chunk / BLOCK_CHUNKS) * BLOCK_BYTES;
}

// A weight is its quant times a scale plus an offset: scales of a chunk's first and second half in
// x and y, offsets in z and w.
float4 plain_factors(__global const uchar *row, uint chunk) {
  __global const uchar *block = block_of(row, chunk);
#if !BLOCKED
  return (float4)(1.0f, 1.0f, 0.0f, 0.0f);
#elif WEIGHT == Q4_0
  const float scale = half_at(block);
  return (float4)(scale, scale, -8.0f * scale, -8.0f * scale);
#elif WEIGHT == Q4_1
  const float2 factors = halves_at(block);
  return (float4)(factors.xx, factors.yy);
#elif WEIGHT == Q8_0
  const float scale = half_at(block);
  return (float4)(scale, scale, 0.0f, 0.0f);
#elif WEIGHT == Q4_K
  // Six bits each: those of chunks 0 to 3 in bytes of their own, of which the later ones have the
  // upper two bits.
  const uint in_block = chunk % BLOCK_CHUNKS;
  __global const uchar *packed = block + 4;
  uint scale = packed[in_block & 3];
  uint least = packed[4 + (in_block & 3)];
  if (in_block < 4) {
    scale &= 63;
    least &= 63;
  } else {
    const uint low = packed[4 + in_block];
    scale = (low & 15) | (scale >> 6 << 4);
    least = (low >> 4) | (least >> 6 << 4);
  }
  const float2 factors = halves_at(block) * (float2)((float)scale, -(float)least);
  return (float4)(factors.xx, factors.yy);
#else
  __global const char *scales = (__global const char *)block + 192 + chunk % BLOCK_CHUNKS * 2;
  const float2 scale = half_at(block + 208) * (float2)((float)scales[0], (float)scales[1]);
  return (float4)(scale, -32.0f * scale);
#endif
}

// Quants 8 * part to 8 * part + 7 of a chunk; the weights themselves where there are none.
float8 plain_quants(__global const uchar *row, uint chunk, int part) {
  __global const uchar *block = block_of(row, chunk);
#if !BLOCKED
  return plain_8(block + part * 8 * WEIGHT_BYTES);
#elif WEIGHT == Q4_0 || WEIGHT == Q4_1
  const uchar8 packed = vload8(part & 1, block + BLOCK_BYTES - 16);
  return convert_float8(part < 2 ? packed & (uchar8)15 : packed >> (uchar8)4);
#elif WEIGHT == Q8_0
  return convert_float8(vload8(part, (__global const char *)(block + 2)));
#elif WEIGHT == Q4_K
  const uint in_block = chunk % BLOCK_CHUNKS;
  const uchar8 packed = vload8(part, block + 16 + in_block / 2 * 32);
  return convert_float8((packed >> (uchar8)(in_block % 2 * 4)) & (uchar8)15);
#else
  const uint in_block = chunk % BLOCK_CHUNKS;
  const uint quarter = in_block % 4;
  const uchar8 low = vload8(part, block + in_block / 4 * 64 + quarter % 2 * 32);
  const uchar8 high = vload8(part, block + 128 + in_block / 4 * 32);
  return convert_float8(((low >> (uchar8)(quarter / 2 * 4)) & (uchar8)15) |
                        (((high >> (uchar8)(quarter * 2)) & (uchar8)3) << (uchar8)4));
#endif
}

// The weights of those quants, as stored.
float8 scaled_8(__global const uchar *row, float4 factors, uint chunk, int part) {
  const float8 quants = plain_quants(row, chunk, part);
#if BLOCKED
  return quants * (part < 2 ? factors.x : factors.y) + (part < 2 ? factors.z : factors.w);
#else
  return quants;
#endif
}

float8 chunk_8(__global const uchar *row, uint chunk, int part) {
  return scaled_8(row, plain_factors(row, chunk), chunk, part);
}
