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
  return vload_half(0, (__global const half *)w);
#else
  return as_float((uint)*(__global const ushort *)w << 16);
#endif
}
#endif

#if WEIGHT == Q4_K
// Scale and minimum of a chunk, six bits each: those of chunks 0 to 3 in bytes of their own, of
// which the later ones have the upper two bits.
float2 chunk_scale(__global const uchar *block, uint chunk) {
  __global const uchar *packed = block + 4;
  uint scale = packed[chunk & 3];
  uint least = packed[4 + (chunk & 3)];
  if (chunk < 4) {
    scale &= 63;
    least &= 63;
  } else {
    const uint low = packed[4 + chunk];
    scale = (low & 15) | (scale >> 6 << 4);
    least = (low >> 4) | (least >> 6 << 4);
  }
  return vload_half2(0, (__global const half *)block) * (float2)((float)scale, (float)least);
}
#endif

// Weights 8 * part to 8 * part + 7 of a chunk, as stored.
float8 chunk_8(__global const uchar *row, uint chunk, int part) {
  __global const uchar *block = row + (ulong)(chunk / BLOCK_CHUNKS) * BLOCK_BYTES;
#if WEIGHT == Q4_0
  const uchar8 packed = vload8(part & 1, block + 2);
  const uchar8 nibbles = part < 2 ? packed & (uchar8)15 : packed >> (uchar8)4;
  return (convert_float8(nibbles) - 8.0f) * vload_half(0, (__global const half *)block);
#elif WEIGHT == Q4_1
  const uchar8 packed = vload8(part & 1, block + 4);
  const uchar8 nibbles = part < 2 ? packed & (uchar8)15 : packed >> (uchar8)4;
  return convert_float8(nibbles) * vload_half(0, (__global const half *)block) +
         vload_half(1, (__global const half *)block);
#elif WEIGHT == Q8_0
  const char8 quants = vload8(part, (__global const char *)(block + 2));
  return convert_float8(quants) * vload_half(0, (__global const half *)block);
#elif WEIGHT == Q4_K
  const uint in_block = chunk % BLOCK_CHUNKS;
  const uchar8 packed = vload8(part, block + 16 + in_block / 2 * 32);
  const uchar8 nibbles = (packed >> (uchar8)(in_block % 2 * 4)) & (uchar8)15;
  const float2 scale = chunk_scale(block, in_block);
  return convert_float8(nibbles) * scale.x - scale.y;
#elif WEIGHT == Q6_K
  const uint in_block = chunk % BLOCK_CHUNKS;
  const uint quarter = in_block % 4;
  const uchar8 low = vload8(part, block + in_block / 4 * 64 + quarter % 2 * 32);
  const uchar8 high = vload8(part, block + 128 + in_block / 4 * 32);
  const uchar8 quants = ((low >> (uchar8)(quarter / 2 * 4)) & (uchar8)15) |
                        (((high >> (uchar8)(quarter * 2)) & (uchar8)3) << (uchar8)4);
  const float scale = (float)((__global const char *)block)[192 + in_block * 2 + part / 2];
  return (convert_float8(quants) - 32.0f) *
         (vload_half(0, (__global const half *)(block + 208)) * scale);
#else
  return plain_8(block + part * 8 * WEIGHT_BYTES);
#endif
}
