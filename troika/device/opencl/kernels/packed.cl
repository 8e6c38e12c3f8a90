// Packed weights as a GPU reads them: a chunk is 32 weights; quants without their offset are turned
// into floats by setting an exponent, which is cheaper than a conversion. A quant q becomes
// 1 + q / RANGE, so that  sum x q = RANGE * (sum x (1 + q / RANGE) - sum x).

#if WEIGHT == Q4_0 || WEIGHT == Q4_1
#define RANGE 16.0f
#define OFFSET 8.0f
#define QUANT_WORDS 4
#elif WEIGHT == Q8_0
#define RANGE 256.0f
#define OFFSET 128.0f
#define QUANT_WORDS 8
#endif

#if WEIGHT == Q4_1
#define SCALES_PER_CHUNK 2
#else
#define SCALES_PER_CHUNK 1
#endif

#define ONE 0x3F800000u

// Where the word of 8 nibbles (4 bytes of Q8_0) number `i` of a chunk of a row lies, and the chunk's
// scale; `chunks` to a row. TILED: 16 rows by 4 chunks together, in the order in which
// product_one.cl reads them; rows and chunks are whole tiles.
#if TILED
ulong word_place(ulong row, uint chunk, uint chunks, uint i) {
  const ulong step = row / 16 * (chunks / 4) + chunk / 4;
  return (((step * 2 + row % 16 / 8) * 32 + row % 8 * 4 + i) * 4) + chunk % 4;
}
ulong scale_place(ulong row, uint chunk, uint chunks) {
  const ulong step = row / 16 * (chunks / 4) + chunk / 4;
  return (step * 8 + row % 8) * 8 + row % 16 / 8 * 4 + chunk % 4;
}
#elif BLOCKED
ulong word_place(ulong row, uint chunk, uint chunks, uint i) {
  return (row * chunks + chunk) * QUANT_WORDS + i;
}
ulong scale_place(ulong row, uint chunk, uint chunks) { return row * chunks + chunk; }
#endif

#if BLOCKED
// The `index`th quant of a chunk as 1 + q / RANGE. `index` is known when compiling.
float quant_float(const uint *words, int index) {
#if WEIGHT != Q8_0
  const uint word = words[index / 8];
  const int at = index % 8 * 4;
#define TOP 19
  const uint placed = at <= TOP ? word << (TOP - at) : word >> (at - TOP);
  return as_float((placed & 0x780000u) | ONE);
#undef TOP
#else
  const uint word = words[index / 4];
  const int at = index % 4 * 8;
#define TOP 15
  const uint placed = at <= TOP ? word << (TOP - at) : word >> (at - TOP);
  return as_float((placed & 0x7F8000u) | ONE);
#undef TOP
#endif
}

// scale * quant + bias, from the parts above: y = a * sum x f + b * sum x for factors (a, b).
float2 chunk_factors(__global const half *scales, ulong chunk) {
#if WEIGHT == Q4_1
  const float2 stored = vload_half2(chunk, scales);
  return (float2)(stored.x * RANGE, stored.y - stored.x * RANGE);
#else
  const float scale = vload_half(chunk, scales);
  return (float2)(scale * RANGE, -scale * (RANGE + OFFSET));
#endif
}
#endif

// Four inputs; one load if they are known to lie on a multiple of 16 bytes.
float4 load_four(__global const float *from, int aligned) {
  return aligned ? *(__global const float4 *)from : vload4(0, from);
}
