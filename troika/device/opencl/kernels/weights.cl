// Stored weights, 32 in a row: how each format is read. Compiled before products and rows with
// -D WEIGHT=<GGUF type id> and, on a GPU, -D PACKED=1.
//
// Plain: as the file has them. Packed (pack_weights.cpp): for quantized formats all quants of the
// matrix, a row's chunks one after another, and behind them the scales; nibbles in the order of
// their weights, bytes of Q8_0 with 128 added.

#define F32 0
#define F16 1
#define Q4_0 2
#define Q4_1 3
#define Q8_0 8
#define BF16 30

#if WEIGHT == F32 || WEIGHT == F16 || WEIGHT == BF16
#define BLOCKED 0
#else
#define BLOCKED 1
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

// Weights 8 * part to 8 * part + 7 of a stored block.
float8 block_8(__global const uchar *block, int part) {
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
#else
  return plain_8(block + part * 8 * WEIGHT_BYTES);
#endif
}
