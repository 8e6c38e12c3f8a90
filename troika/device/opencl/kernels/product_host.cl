// Products on a processor's cores: y = x W^T, optionally + add. A work-item computes one output for
// ROWS rows; the compiler needs no vectorizing across work-items, vectors of 8 are written out.
// Weights lie as in the file. No local memory: barriers are slow there.
//
// Global size: outputs, rows / ROWS rounded up.

__kernel void product(__global const float *x, ulong x_begin, uint x_stride,
                      __global const uchar *w, ulong w_begin, ulong w_stride,
                      __global float *y, ulong y_begin, uint y_stride,
                      __global const float *add, ulong add_begin, uint add_stride, int has_add,
                      uint n, uint k, uint m) {
  const uint output = get_global_id(0);
  const uint row = get_global_id(1) * ROWS;
  if (output >= n) return;
  __global const uchar *weights = w + w_begin + output * w_stride;
  __global const float *inputs[ROWS];
  float8 sums[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    inputs[r] = x + x_begin + (ulong)min(row + r, m - 1) * x_stride;
    sums[r] = (float8)0.0f;
  }
  const uint chunks = k / 32;
  for (uint chunk = 0; chunk < chunks; ++chunk) {
    for (int part = 0; part < 4; ++part) {
      const float8 weight = chunk_8(weights, chunk, part);
      for (int r = 0; r < ROWS; ++r) {
        sums[r] += weight * vload8(chunk * 4 + part, inputs[r]);
      }
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    if (row + r >= m) break;
    const float4 half_sum = sums[r].lo + sums[r].hi;
    float sum = (half_sum.x + half_sum.z) + (half_sum.y + half_sum.w);
#if !BLOCKED
    for (uint i = chunks * 32; i < k; ++i) sum += plain_1(weights + i * WEIGHT_BYTES) * inputs[r][i];
#endif
    if (has_add) sum += add[add_begin + (ulong)(row + r) * add_stride + output];
    y[y_begin + (ulong)(row + r) * y_stride + output] = sum;
  }
}
