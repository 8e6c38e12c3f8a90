// Products on a processor's cores: y = x W^T, optionally + add. A work-item computes OUTPUTS outputs
// for ROWS rows; the compiler needs no vectorizing across work-items, vectors of 8 are written out.
// Weights lie as in the file. No local memory: barriers are slow there. Every sum has a name of its
// own: not every runtime unrolls loops, and an array of sums would then lie in memory.
//
// Global size: outputs / OUTPUTS, rows / ROWS, both rounded up.

#if OUTPUTS == 4
#define EACH_OUTPUT(DO) DO(0) DO(1) DO(2) DO(3)
#else
#define EACH_OUTPUT(DO) DO(0)
#endif
#if ROWS == 8
#define EACH_ROW(DO, o) DO(o, 0) DO(o, 1) DO(o, 2) DO(o, 3) DO(o, 4) DO(o, 5) DO(o, 6) DO(o, 7)
#elif ROWS == 4
#define EACH_ROW(DO, o) DO(o, 0) DO(o, 1) DO(o, 2) DO(o, 3)
#else
#define EACH_ROW(DO, o) DO(o, 0)
#endif

float sum_of(float8 sums) {
  const float4 half_sum = sums.lo + sums.hi;
  return (half_sum.x + half_sum.z) + (half_sum.y + half_sum.w);
}

// Of weights that come one by one: those behind the last whole chunk.
float rest(__global const uchar *weights, __global const float *inputs, uint begin, uint k) {
  float sum = 0.0f;
#if !BLOCKED
  for (uint i = begin; i < k; ++i) sum += plain_1(weights + i * WEIGHT_BYTES) * inputs[i];
#endif
  return sum;
}

__kernel void product(__global const float *x, ulong x_begin, uint x_stride,
                      __global const uchar *w, ulong w_begin, ulong w_stride,
                      __global float *y, ulong y_begin, uint y_stride,
                      __global const float *add, ulong add_begin, uint add_stride, int has_add,
                      uint n, uint k, uint m) {
  const uint output = get_global_id(0) * OUTPUTS;
  const uint row = get_global_id(1) * ROWS;
  if (output >= n) return;

#define WEIGHTS(o) \
  __global const uchar *weights_##o = w + w_begin + min(output + o, n - 1) * w_stride;
  EACH_OUTPUT(WEIGHTS)
#define INPUTS(o, r) \
  __global const float *inputs_##r = x + x_begin + (ulong)min(row + r, m - 1) * x_stride;
  EACH_ROW(INPUTS, 0)
#define SUM(o, r) float8 sum_##o##_##r = (float8)0.0f;
#define SUMS(o) EACH_ROW(SUM, o)
  EACH_OUTPUT(SUMS)

#define ADD_UP(o, r) sum_##o##_##r += weight * vload8(chunk * 4 + part, inputs_##r);
#define PART(o, number)                                                    \
  {                                                                        \
    const int part = number;                                               \
    const float8 weight = scaled_8(weights_##o, factors, chunk, part);     \
    EACH_ROW(ADD_UP, o)                                                    \
  }
#define CHUNK(o)                                                \
  {                                                             \
    const float4 factors = plain_factors(weights_##o, chunk);   \
    PART(o, 0)                                                  \
    PART(o, 1)                                                  \
    PART(o, 2)                                                  \
    PART(o, 3)                                                  \
  }
  const uint chunks = k / 32;
  for (uint chunk = 0; chunk < chunks; ++chunk) {
    EACH_OUTPUT(CHUNK)
  }

#define STORE(o, r)                                                                  \
  if (row + r < m && output + o < n) {                                               \
    float sum = sum_of(sum_##o##_##r) + rest(weights_##o, inputs_##r, chunks * 32, k); \
    if (has_add) sum += add[add_begin + (ulong)(row + r) * add_stride + output + o]; \
    y[y_begin + (ulong)(row + r) * y_stride + output + o] = sum;                     \
  }
#define STORES(o) EACH_ROW(STORE, o)
  EACH_OUTPUT(STORES)
}
