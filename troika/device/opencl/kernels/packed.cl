// Packed weights as a GPU reads them: a chunk is 32 weights; quants without their offset are turned
// into floats by setting an exponent, which is cheaper than a conversion. A quant q becomes
// 1 + q / RANGE, so that  sum x q = RANGE * (sum x (1 + q / RANGE) - sum x).

#if WEIGHT == Q4_0 || WEIGHT == Q4_1 || WEIGHT == Q4_K
#define RANGE 16.0f
#define QUANT_WORDS 4
// Where a quant has to begin, and its bits there.
#define TOP 19
#define TOP_BITS 0x780000u
#elif WEIGHT == Q8_0
#define RANGE 256.0f
#define QUANT_WORDS 8
#define TOP 15
#define TOP_BITS 0x7F8000u
#elif WEIGHT == Q6_K
#define RANGE 64.0f
#define QUANT_WORDS 8
#define TOP 17
#define TOP_BITS 0x7E0000u
#endif

// Weights of a chunk that share a scale, and how many such parts it has.
#if WEIGHT == Q6_K
#define PART 16
#else
#define PART 32
#endif
#define PARTS (32 / PART)

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
  const int per_word = 32 / QUANT_WORDS;
  const uint word = words[index / per_word];
  const int at = index % per_word * (32 / per_word);
  const uint placed = at <= TOP ? word << (TOP - at) : word >> (at - TOP);
  return as_float((placed & TOP_BITS) | ONE);
}

// Bytes of the scales of 8 chunks of K-quants: Q4_K d, dmin, and 8 times scale and minimum; Q6_K d
// and 16 scales.
#define SUPER_SCALES 20

// Of a part of a chunk: w = x * quant + y.
float2 stored_factors(__global const uchar *scales, ulong chunk, uint part) {
#if WEIGHT == Q4_1
  return vload_half2(chunk, (__global const half *)scales);
#elif WEIGHT == Q4_K
  __global const uchar *super = scales + chunk / 8 * SUPER_SCALES;
  const float2 both = vload_half2(0, (__global const half *)super) *
                      convert_float2(vload2(chunk % 8, super + 4));
  return (float2)(both.x, -both.y);
#elif WEIGHT == Q6_K
  __global const uchar *super = scales + chunk / 8 * SUPER_SCALES;
  const float scale = vload_half(0, (__global const half *)super) *
                      (float)((__global const char *)super)[2 + chunk % 8 * 2 + part];
  return (float2)(scale, -32.0f * scale);
#else
  const float scale = vload_half(chunk, (__global const half *)scales);
  return (float2)(scale, scale * (WEIGHT == Q8_0 ? -128.0f : -8.0f));
#endif
}

// The same from the floats above: y = a * sum x f + b * sum x for factors (a, b).
float2 chunk_factors(__global const uchar *scales, ulong chunk, uint part) {
  const float2 stored = stored_factors(scales, chunk, part);
  return (float2)(stored.x * RANGE, stored.y - stored.x * RANGE);
}
#endif

// Four inputs; one load if they are known to lie on a multiple of 16 bytes.
float4 load_four(__global const float *from, int aligned) {
  return aligned ? *(__global const float4 *)from : vload4(0, from);
}
