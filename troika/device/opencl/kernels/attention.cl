// Attention over the block KV cache by online softmax: keys are taken a tile at a time, so that no
// row of scores is ever whole. Keys lie [block][dim][KV_BLOCK], values [block][KV_BLOCK][dim].
//
// `rows` in the batch: for every row the place of its sequence's block table and its position.

#define KV_BLOCK 32

#if KV_F16
#define KV_ELEMENT half
#define LOAD_KV(index, from) vload_half(index, from)
#define LOAD_KV8(index, from) vload_half8(index, from)
#else
#define KV_ELEMENT float
#define LOAD_KV(index, from) (from)[index]
#define LOAD_KV8(index, from) vload8(index, from)
#endif

#if HOST
// A work-item computes one query head of one row. Global size: heads, rows.
__kernel void attention(__global const float *q, ulong q_begin, uint q_stride,
                        __global const KV_ELEMENT *kv, ulong k_first, ulong head_step,
                        ulong v_offset, __global const int *batch, uint rows,
                        __global float *y, ulong y_begin, uint y_stride,
                        uint first_head, uint group, float scale, uint n_rows, uint n_heads) {
  const uint head = get_global_id(0);
  const ulong row = get_global_id(1);
  if (head >= n_heads || row >= n_rows) return;
  const uint kv_head = (first_head + head) / group - first_head / group;
  __global const KV_ELEMENT *keys = kv + k_first + kv_head * head_step;
  __global const KV_ELEMENT *values = keys + v_offset;
  __global const int *table = batch + batch[rows + 2 * row];
  const int position = batch[rows + 2 * row + 1];
  q += q_begin + row * q_stride + head * HEAD_DIM;
  float sums[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) sums[d] = 0.0f;
  float highest = -INFINITY;
  float total = 0.0f;
  for (int begin = 0; begin <= position; begin += KV_BLOCK) {
    const ulong block = (ulong)table[begin / KV_BLOCK] * (KV_BLOCK * HEAD_DIM);
    const int count = min(position + 1 - begin, KV_BLOCK);
    float8 scores[4] = {(float8)0.0f, (float8)0.0f, (float8)0.0f, (float8)0.0f};
    for (int d = 0; d < HEAD_DIM; ++d) {
      const float query = q[d] * scale;
      for (int part = 0; part < 4; ++part) {
        scores[part] += query * LOAD_KV8(d * 4 + part, keys + block);
      }
    }
    float weights[KV_BLOCK];
    for (int part = 0; part < 4; ++part) vstore8(scores[part], part, weights);
    float high = highest;
    for (int i = 0; i < count; ++i) high = max(high, weights[i]);
    const float shrink = exp(highest - high);
    highest = high;
    total *= shrink;
    for (int d = 0; d < HEAD_DIM; ++d) sums[d] *= shrink;
    for (int i = 0; i < count; ++i) {
      const float weight = exp(weights[i] - high);
      total += weight;
      for (int d = 0; d < HEAD_DIM; ++d) {
        sums[d] += weight * LOAD_KV(i * HEAD_DIM + d, values + block);
      }
    }
  }
  y += y_begin + row * y_stride + head * HEAD_DIM;
  for (int d = 0; d < HEAD_DIM; ++d) y[d] = sums[d] / total;
}
#else
// A work-group computes one query head of one row: a tile is GROUP keys, one for each work-item;
// then the work-items share out the dimensions of the values, PARTS to each.
// Local size: GROUP. Global size: heads * GROUP, rows.
#define GROUP 256
#define PARTS (GROUP / HEAD_DIM)

float largest(float value, __local float *partial) {
  const uint lid = get_local_id(0);
  partial[lid] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < 16) {
    float most = partial[lid];
    for (uint i = lid + 16; i < GROUP; i += 16) most = max(most, partial[i]);
    partial[lid] = most;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float most = partial[0];
  for (int i = 1; i < 16; ++i) most = max(most, partial[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  return most;
}

float summed(float value, __local float *partial) {
  const uint lid = get_local_id(0);
  partial[lid] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < 16) {
    float sum = partial[lid];
    for (uint i = lid + 16; i < GROUP; i += 16) sum += partial[i];
    partial[lid] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = partial[0];
  for (int i = 1; i < 16; ++i) sum += partial[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void attention(__global const float *q, ulong q_begin, uint q_stride,
               __global const KV_ELEMENT *kv, ulong k_first, ulong head_step, ulong v_offset,
               __global const int *batch, uint rows,
               __global float *y, ulong y_begin, uint y_stride,
               uint first_head, uint group, float scale, uint n_rows, uint n_heads) {
  __local float query[HEAD_DIM];
  __local float weights[GROUP];
  __local float partial[GROUP];
  const uint head = get_group_id(0);
  const ulong row = get_group_id(1);
  const uint lid = get_local_id(0);
  const uint kv_head = (first_head + head) / group - first_head / group;
  __global const KV_ELEMENT *keys = kv + k_first + kv_head * head_step;
  __global const KV_ELEMENT *values = keys + v_offset;
  __global const int *table = batch + batch[rows + 2 * row];
  const int position = batch[rows + 2 * row + 1];
  q += q_begin + row * q_stride + head * HEAD_DIM;
  for (uint d = lid; d < HEAD_DIM; d += GROUP) query[d] = q[d] * scale;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint d = lid % HEAD_DIM;
  const uint part = lid / HEAD_DIM;
  float highest = -INFINITY;
  float total = 0.0f;
  float sum = 0.0f;
  for (int begin = 0; begin <= position; begin += GROUP) {
    const int key = begin + (int)lid;
    float score = -INFINITY;
    if (key <= position) {
      const ulong block = (ulong)table[key / KV_BLOCK] * (KV_BLOCK * HEAD_DIM);
      __global const KV_ELEMENT *from = keys + block + key % KV_BLOCK;
      score = 0.0f;
#pragma unroll 16
      for (int i = 0; i < HEAD_DIM; ++i) score += query[i] * LOAD_KV(i * KV_BLOCK, from);
    }
    const float high = max(highest, largest(score, partial));
    const float weight = key <= position ? exp(score - high) : 0.0f;
    const float shrink = exp(highest - high);
    highest = high;
    weights[lid] = weight;
    total = total * shrink + summed(weight, partial);
    sum *= shrink;
    if (part < PARTS) {
      const int count = min(position + 1 - begin, GROUP);
      // A part takes every PARTSth block of keys.
      for (int block_begin = (int)part * KV_BLOCK; block_begin < count;
           block_begin += PARTS * KV_BLOCK) {
        const ulong block =
            (ulong)table[(begin + block_begin) / KV_BLOCK] * (KV_BLOCK * HEAD_DIM);
        __global const KV_ELEMENT *from = values + block + d;
        const int here = min(count - block_begin, KV_BLOCK);
        if (here == KV_BLOCK) {
#pragma unroll 8
          for (int i = 0; i < KV_BLOCK; ++i) {
            sum += weights[block_begin + i] * LOAD_KV(i * HEAD_DIM, from);
          }
        } else {
          for (int i = 0; i < here; ++i) {
            sum += weights[block_begin + i] * LOAD_KV(i * HEAD_DIM, from);
          }
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < HEAD_DIM) {
    for (int i = 1; i < PARTS; ++i) sum += partial[i * HEAD_DIM + lid];
    y[y_begin + row * y_stride + head * HEAD_DIM + lid] = sum / total;
  }
}
#endif
