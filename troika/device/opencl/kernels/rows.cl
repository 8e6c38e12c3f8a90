// Operators that treat each row alone: norm, RoPE, KV write, SiLU * up, sums, gathers.
//
// The batch (batch_data.h) is one array of integers; `places`, `wanted`: where its parts begin in the
// buffer. Where a kernel has `items`, that is how many work-items of the first dimension do something.

float silu(float x) { return x / (1.0f + exp(-x)); }

#if HOST
// Global size: rows.
__kernel void rms_norm(__global const float *x, ulong x_begin, uint x_stride,
                       __global const float *gain, ulong gain_begin, float eps, uint width,
                       __global float *y, ulong y_begin, uint y_stride) {
  const ulong row = get_global_id(0);
  x += x_begin + row * x_stride;
  y += y_begin + row * y_stride;
  gain += gain_begin;
  float8 squares = (float8)0.0f;
  const uint eights = width / 8;
  for (uint i = 0; i < eights; ++i) {
    const float8 eight = vload8(i, x);
    squares += eight * eight;
  }
  const float4 fours = squares.lo + squares.hi;
  float sum = (fours.x + fours.z) + (fours.y + fours.w);
  for (uint i = eights * 8; i < width; ++i) sum += x[i] * x[i];
  const float factor = 1.0f / sqrt(sum / (float)width + eps);
  for (uint i = 0; i < eights; ++i) {
    vstore8(vload8(i, x) * factor * vload8(i, gain), i, y);
  }
  for (uint i = eights * 8; i < width; ++i) y[i] = x[i] * factor * gain[i];
}
#else
// Local size: NORM_GROUP. Global size: rows * NORM_GROUP.
#define NORM_GROUP 256
__kernel __attribute__((reqd_work_group_size(NORM_GROUP, 1, 1)))
void rms_norm(__global const float *x, ulong x_begin, uint x_stride,
              __global const float *gain, ulong gain_begin, float eps, uint width,
              __global float *y, ulong y_begin, uint y_stride) {
  __local float partial[NORM_GROUP];
  const ulong row = get_group_id(0);
  const uint lid = get_local_id(0);
  x += x_begin + row * x_stride;
  y += y_begin + row * y_stride;
  gain += gain_begin;
  float sum = 0.0f;
  for (uint i = lid; i < width; i += NORM_GROUP) sum += x[i] * x[i];
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = NORM_GROUP / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] += partial[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float factor = 1.0f / sqrt(partial[0] / (float)width + eps);
  for (uint i = lid; i < width; i += NORM_GROUP) y[i] = x[i] * factor * gain[i];
}
#endif

// The elements of a pair: adjacent, or half a head apart.
uint2 pair_of(uint pair, uint rope_dim, int halves) {
  return halves ? (uint2)(pair, pair + rope_dim / 2) : (uint2)(2 * pair, 2 * pair + 1);
}

// Element `i` of a head after rotation.
float rotated(__global const float *head, uint i, uint rope_dim, int halves,
              __global const float *table) {
  if (i >= rope_dim) return head[i];
  const uint pair = halves ? i % (rope_dim / 2) : i / 2;
  const uint2 at = pair_of(pair, rope_dim, halves);
  const float2 cos_sin = vload2(pair, table);
  const float a = head[at.x];
  const float b = head[at.y];
  return i == at.x ? a * cos_sin.x - b * cos_sin.y : a * cos_sin.y + b * cos_sin.x;
}

// One pair, or one element that is not rotated, by its number in a head. Input and output may be
// the same.
void rope_part(__global const float *in, __global float *out, uint part, uint rope_dim, int halves,
               __global const float *table) {
  if (part < rope_dim / 2) {
    const uint2 at = pair_of(part, rope_dim, halves);
    const float2 cos_sin = vload2(part, table);
    const float a = in[at.x];
    const float b = in[at.y];
    out[at.x] = a * cos_sin.x - b * cos_sin.y;
    out[at.y] = a * cos_sin.y + b * cos_sin.x;
  } else {
    const uint i = part + rope_dim / 2;
    out[i] = in[i];
  }
}

// Items: heads * (head_dim - rope_dim / 2), by rows.
__kernel void rope(__global const float *x, ulong x_begin, uint x_stride,
                   __global const float *table, ulong table_begin, uint table_stride,
                   __global float *y, ulong y_begin, uint y_stride,
                   uint head_dim, uint rope_dim, int halves, uint items) {
  if (get_global_id(0) >= items) return;
  const uint parts = head_dim - rope_dim / 2;
  const uint head = get_global_id(0) / parts;
  const ulong row = get_global_id(1);
  rope_part(x + x_begin + row * x_stride + head * head_dim,
            y + y_begin + row * y_stride + head * head_dim, get_global_id(0) % parts, rope_dim,
            halves, table + table_begin + row * table_stride);
}

// Keys (rotated first if rope_dim > 0) and values of KV heads, and queries rotated beside them.
// `places`: for every row its cell, block * KV_BLOCK + slot. Items: (heads of k + heads of v + heads
// of q) * head_dim, by rows; every item one element (of q: one part).
__kernel void kv_write(__global const float *k, ulong k_begin, uint k_stride,
                       __global const float *v, ulong v_begin, uint v_stride,
                       __global const float *table, ulong table_begin, uint table_stride,
                       __global KV_ELEMENT *kv, ulong k_first, ulong head_step, ulong v_offset,
                       __global const int *batch, ulong places,
                       uint n_heads, uint head_dim, uint rope_dim, int halves,
                       __global const float *q, ulong q_begin, uint q_stride,
                       __global float *rotated_q, ulong rotated_begin, uint rotated_stride,
                       uint items) {
  if (get_global_id(0) >= items) return;
  const ulong row = get_global_id(1);
  const uint head = get_global_id(0) / head_dim;
  const uint i = get_global_id(0) % head_dim;
  table += table_begin + row * table_stride;
  if (head >= 2 * n_heads) {
    const uint query = head - 2 * n_heads;
    if (i >= head_dim - rope_dim / 2) return;
    rope_part(q + q_begin + row * q_stride + query * head_dim,
              rotated_q + rotated_begin + row * rotated_stride + query * head_dim, i, rope_dim,
              halves, table);
    return;
  }
  const uint place = batch[places + row];
  const ulong block = place / KV_BLOCK;
  const uint slot = place % KV_BLOCK;
  if (head < n_heads) {
    const ulong at = k_first + head * head_step + (block * head_dim + i) * KV_BLOCK + slot;
    const float key =
        rotated(k + k_begin + row * k_stride + head * head_dim, i, rope_dim, halves, table);
    STORE_KV(key, at, kv);
  } else {
    const uint value_head = head - n_heads;
    const ulong at = k_first + value_head * head_step + v_offset +
                     (block * KV_BLOCK + slot) * head_dim + i;
    STORE_KV(v[v_begin + row * v_stride + value_head * head_dim + i], at, kv);
  }
}

// Items: width, by rows.
__kernel void silu_mul(__global const float *gate, ulong gate_begin, uint gate_stride,
                       __global const float *up, ulong up_begin, uint up_stride,
                       __global float *y, ulong y_begin, uint y_stride, uint items) {
  if (get_global_id(0) >= items) return;
  const ulong row = get_global_id(1);
  const uint i = get_global_id(0);
  y[y_begin + row * y_stride + i] = silu(gate[gate_begin + row * gate_stride + i]) *
                                    up[up_begin + row * up_stride + i];
}

__kernel void add(__global const float *a, ulong a_begin, uint a_stride,
                  __global const float *b, ulong b_begin, uint b_stride,
                  __global float *y, ulong y_begin, uint y_stride, uint items) {
  if (get_global_id(0) >= items) return;
  const ulong row = get_global_id(1);
  const uint i = get_global_id(0);
  y[y_begin + row * y_stride + i] =
      a[a_begin + row * a_stride + i] + b[b_begin + row * b_stride + i];
}

__kernel void copy_columns(__global const float *x, ulong x_begin, uint x_stride,
                           __global float *y, ulong y_begin, uint y_stride, uint items) {
  if (get_global_id(0) >= items) return;
  const ulong row = get_global_id(1);
  const uint i = get_global_id(0);
  y[y_begin + row * y_stride + i] = x[x_begin + row * x_stride + i];
}

__kernel void gather_rows(__global const float *x, ulong x_begin, uint x_stride,
                          __global float *y, ulong y_begin, uint y_stride,
                          __global const int *batch, ulong wanted, uint items) {
  if (get_global_id(0) >= items) return;
  const ulong row = get_global_id(1);
  const uint i = get_global_id(0);
  y[y_begin + row * y_stride + i] = x[x_begin + (ulong)batch[wanted + row] * x_stride + i];
}
