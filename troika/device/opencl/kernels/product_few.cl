// Products of few rows on a GPU, bound by reading the weights once. A work-group computes OUTPUTS
// outputs for ROWS rows; its work-items share the inputs chunk by chunk and join their sums at the
// end. Up to three matrices of the same inputs stand side by side (q, k, v), the norm before them is
// folded in (its factor is common to all outputs of a row), a residual behind them is added.
// GATED: two matrices, y = silu(first) * second.
//
// TOGETHER: other buffers than those of the inputs and of the first weights are not given; there lie
// outputs and the residual, and the other weights and the norm's factors. Where they begin is told
// in elements, of weights and their scales in bytes.
//
// Local size: GROUP. Global size: groups over all outputs * GROUP, rows / ROWS rounded up.

#define VALUES (OUTPUTS * ROWS)

float silu(float x) { return x / (1.0f + exp(-x)); }

struct Matrix {
  __global const uchar *weights;  // quants, or plain weights
  __global const uchar *scales;
  __global float *y;
  uint n;
};

// sums[o * ROWS + r] += the part of this work-item.
void add_products(const struct Matrix *matrix, uint first, uint k, __global const float *x,
                  uint x_stride, int aligned, uint rows, __global const float *gain,
                  int has_gain, float *sums) {
  const uint chunks = k / 32;
  for (uint chunk = get_local_id(0); chunk < chunks; chunk += GROUP) {
#if BLOCKED
    uint words[OUTPUTS][QUANT_WORDS];
    float2 factors[OUTPUTS][PARTS];
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o) {
      const ulong row = min(first + o, matrix->n - 1);
      __global const uint *quants = (__global const uint *)matrix->weights;
#if TILED
#pragma unroll
      for (int i = 0; i < QUANT_WORDS; ++i) {
        words[o][i] = quants[word_place(row, chunk, chunks, i)];
      }
#else
      quants += word_place(row, chunk, chunks, 0);
#pragma unroll
      for (int i = 0; i < QUANT_WORDS; i += 4) {
        const uint4 four = ((__global const uint4 *)quants)[i / 4];
        words[o][i] = four.x;
        words[o][i + 1] = four.y;
        words[o][i + 2] = four.z;
        words[o][i + 3] = four.w;
      }
#endif
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        factors[o][part] = chunk_factors(matrix->scales, scale_place(row, chunk, chunks), part);
      }
    }
#endif
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      __global const float *row = x + (ulong)min((uint)r, rows - 1) * x_stride + chunk * 32;
      float inputs[32];
      float totals[PARTS];
#pragma unroll
      for (int part = 0; part < PARTS; ++part) totals[part] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float4 four = load_four(row + i * 4, aligned);
        if (has_gain) four *= ((__global const float4 *)(gain + chunk * 32))[i];
        inputs[4 * i] = four.x;
        inputs[4 * i + 1] = four.y;
        inputs[4 * i + 2] = four.z;
        inputs[4 * i + 3] = four.w;
        totals[i * 4 / PART] += (four.x + four.y) + (four.z + four.w);
      }
#pragma unroll
      for (int o = 0; o < OUTPUTS; ++o) {
#if BLOCKED
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
          float sum = 0.0f;
#pragma unroll
          for (int i = part * PART; i < (part + 1) * PART; ++i) {
            sum = fma(inputs[i], quant_float(words[o], i), sum);
          }
          sums[o * ROWS + r] += factors[o][part].x * sum + factors[o][part].y * totals[part];
        }
#else
        float sum = 0.0f;
        __global const uchar *weights =
            matrix->weights +
            ((ulong)min(first + o, matrix->n - 1) * k + chunk * 32) * WEIGHT_BYTES;
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const float8 eight = plain_8(weights + part * 8 * WEIGHT_BYTES);
          const float8 product = eight * vload8(part, inputs);
          const float4 four = product.lo + product.hi;
          sum += (four.x + four.z) + (four.y + four.w);
        }
        sums[o * ROWS + r] += sum;
#endif
      }
    }
  }
#if !BLOCKED
  for (uint i = chunks * 32 + get_local_id(0); i < k; i += GROUP) {
    for (int r = 0; r < ROWS; ++r) {
      float input = x[(ulong)min((uint)r, rows - 1) * x_stride + i];
      if (has_gain) input *= gain[i];
      for (int o = 0; o < OUTPUTS; ++o) {
        const ulong at = (ulong)min(first + o, matrix->n - 1) * k + i;
        sums[o * ROWS + r] += input * plain_1(matrix->weights + at * WEIGHT_BYTES);
      }
    }
  }
#endif
}

// Sums `sums` over the work-group; afterwards `joined` holds VALUES of them.
void join(const float *sums, __local float *partial, __local float *joined) {
  const uint lid = get_local_id(0);
#pragma unroll
  for (int v = 0; v < VALUES; ++v) partial[v * GROUP + lid] = sums[v];
  barrier(CLK_LOCAL_MEM_FENCE);
  // Each value's sums are added by GROUP / SPREAD work-items, then by one.
  for (uint v = lid / 16; v < VALUES; v += GROUP / 16) {
    float sum = 0.0f;
    for (uint i = lid % 16; i < GROUP; i += 16) sum += partial[v * GROUP + i];
    partial[v * GROUP + lid % 16] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint v = lid; v < VALUES; v += GROUP) {
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i) sum += partial[v * GROUP + i];
    joined[v] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// 1 / root mean square of each row, by all of the work-group.
void norm_factors(__global const float *x, uint x_stride, uint rows, uint k, float eps,
                  __local float *partial, __local float *factors) {
  const uint lid = get_local_id(0);
  for (int r = 0; r < ROWS; ++r) {
    __global const float *row = x + (ulong)min((uint)r, rows - 1) * x_stride;
    float sum = 0.0f;
    for (uint i = lid; i < k; i += GROUP) sum += row[i] * row[i];
    partial[r * GROUP + lid] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint r = lid / 16; r < ROWS; r += GROUP / 16) {
    float sum = 0.0f;
    for (uint i = lid % 16; i < GROUP; i += 16) sum += partial[r * GROUP + i];
    partial[r * GROUP + lid % 16] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < ROWS) {
    float sum = 0.0f;
    for (int i = 0; i < 16; ++i) sum += partial[lid * GROUP + i];
    factors[lid] = 1.0f / sqrt(sum / (float)k + eps);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void product_few(__global const float *x, ulong x_begin, uint x_stride,
                 __global const uchar *w0, ulong w0_begin, ulong scales0,
                 __global float *y0, ulong y0_begin, uint n0,
                 __global const uchar *w1, ulong w1_begin, ulong scales1,
                 __global float *y1, ulong y1_begin, uint n1,
                 __global const uchar *w2, ulong w2_begin, ulong scales2,
                 __global float *y2, ulong y2_begin, uint n2,
                 uint4 y_strides,
                 __global const float *add, ulong add_begin, uint add_stride, int has_add,
                 __global const float *gain, ulong gain_begin, float eps, int has_gain, uint k, uint m,
                 int aligned) {
  __local float partial[VALUES * GROUP];
  __local float joined[VALUES];
#if GATED
  __local float gates[VALUES];
#endif
  __local float factors[ROWS];
#if TOGETHER
  y0 = y1 = y2 = (__global float *)x;
  add = x;
  w1 = w2 = w0;
  gain = (__global const float *)w0;
#endif
  gain += gain_begin;
  const uint row = get_group_id(1) * ROWS;
  const uint rows = m - row;
  x += x_begin + (ulong)row * x_stride;
  uint group = get_group_id(0);
  struct Matrix matrix;
  matrix.weights = w0 + w0_begin;
  matrix.scales = w0 + scales0;
  matrix.y = y0 + y0_begin;
  matrix.n = n0;
  uint y_stride = y_strides.x;
#if !GATED
  const uint groups0 = (n0 + OUTPUTS - 1) / OUTPUTS;
  const uint groups1 = (n1 + OUTPUTS - 1) / OUTPUTS;
  if (group >= groups0 + groups1) {
    group -= groups0 + groups1;
    matrix.weights = w2 + w2_begin;
    matrix.scales = w2 + scales2;
    matrix.y = y2 + y2_begin;
    matrix.n = n2;
    y_stride = y_strides.z;
  } else if (group >= groups0) {
    group -= groups0;
    matrix.weights = w1 + w1_begin;
    matrix.scales = w1 + scales1;
    matrix.y = y1 + y1_begin;
    matrix.n = n1;
    y_stride = y_strides.y;
  }
#endif
  const uint first = group * OUTPUTS;
  if (has_gain) norm_factors(x, x_stride, rows, k, eps, partial, factors);
  float sums[VALUES];
#pragma unroll
  for (int v = 0; v < VALUES; ++v) sums[v] = 0.0f;
  add_products(&matrix, first, k, x, x_stride, aligned, rows, gain, has_gain, sums);
#if GATED
  join(sums, partial, gates);
  matrix.weights = w1 + w1_begin;
  matrix.scales = w1 + scales1;
#pragma unroll
  for (int v = 0; v < VALUES; ++v) sums[v] = 0.0f;
  add_products(&matrix, first, k, x, x_stride, aligned, rows, gain, has_gain, sums);
#endif
  join(sums, partial, joined);
  for (uint v = get_local_id(0); v < VALUES; v += GROUP) {
    const uint output = first + v / ROWS;
    const uint r = v % ROWS;
    if (output >= matrix.n || r >= rows) continue;
    float value = joined[v];
    if (has_gain) value *= factors[r];
#if GATED
    value *= silu(has_gain ? gates[v] * factors[r] : gates[v]);
#endif
    if (has_add) value += add[add_begin + (ulong)(row + r) * add_stride + output];
    matrix.y[(ulong)(row + r) * y_stride + output] = value;
  }
}
