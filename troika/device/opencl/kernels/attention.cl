// Attention over the block KV cache by online softmax: keys are taken a tile at a time, so that no
// row of scores is ever whole. Keys lie [block][dim][KV_BLOCK], values [block][KV_BLOCK][dim].
//
// `rows` in the batch: for every row the place of its sequence's block table and its position.

#if HOST
// A work-item computes one query head of one row. Global size: heads, rows.
__kernel void attention(__global const float *q, ulong q_begin, uint q_stride,
                        __global const KV_ELEMENT *kv, ulong k_first, ulong head_step,
                        ulong v_offset, __global const int *batch, ulong batch_begin, uint rows,
                        __global float *y, ulong y_begin, uint y_stride,
                        uint first_head, uint group, float scale, uint n_rows, uint n_heads) {
  const uint head = get_global_id(0);
  const ulong row = get_global_id(1);
  if (head >= n_heads || row >= n_rows) return;
  const uint kv_head = (first_head + head) / group - first_head / group;
  __global const KV_ELEMENT *keys = kv + k_first + kv_head * head_step;
  __global const KV_ELEMENT *values = keys + v_offset;
  batch += batch_begin;
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
// A work-group computes one query head of one row, or a part of its keys: KEYS at a time, each by
// GROUP / KEYS work-items; then the work-items share out the dimensions of the values, PARTS to each.
// Several splits leave their sums, largest score and sum of weights in `partials`, for join_splits.
// Local size: GROUP. Global size: heads * splits * GROUP, rows.
#define GROUP 256
#define KEYS 64
#define SHARES (GROUP / KEYS)
#define SHARE_DIMS ((HEAD_DIM + SHARES - 1) / SHARES)
#define PARTS (GROUP / HEAD_DIM)
#define PART_KEYS ((KV_BLOCK + PARTS - 1) / PARTS)
#define SPLIT_FLOATS (HEAD_DIM + 2)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void attention(__global const float *q, ulong q_begin, uint q_stride,
               __global const KV_ELEMENT *kv, ulong k_first, ulong head_step, ulong v_offset,
               __global const int *batch, ulong batch_begin, uint rows,
               __global float *y, ulong y_begin, uint y_stride,
               uint first_head, uint group, float scale, uint n_rows, uint n_heads,
               __global float *partials, ulong partials_begin, uint splits) {
  __local float query[HEAD_DIM];
  __local float shares[GROUP];
  __local float scores[KEYS];
  __local float weights[KEYS];
  const uint head = get_group_id(0) / splits;
  const uint split = get_group_id(0) % splits;
  const ulong row = get_group_id(1);
  const uint lid = get_local_id(0);
  const uint kv_head = (first_head + head) / group - first_head / group;
  __global const KV_ELEMENT *keys = kv + k_first + kv_head * head_step;
  __global const KV_ELEMENT *values = keys + v_offset;
  batch += batch_begin;
  __global const int *table = batch + batch[rows + 2 * row];
  const int n_keys = batch[rows + 2 * row + 1] + 1;
  const int per_split = (n_keys + (int)splits * KEYS - 1) / ((int)splits * KEYS) * KEYS;
  const int first = (int)split * per_split;
  const int last = min(n_keys, first + per_split);
  q += q_begin + row * q_stride + head * HEAD_DIM;
  for (uint d = lid; d < HEAD_DIM; d += GROUP) query[d] = q[d] * scale;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint key = lid % KEYS;
  const uint d = lid % HEAD_DIM;
  const uint part = lid / HEAD_DIM;
  float highest = -INFINITY;
  float total = 0.0f;
  float sum = 0.0f;
  for (int begin = first; begin < last; begin += KEYS) {
    const int here = begin + (int)key;
    float share = 0.0f;
    if (here < last) {
      const ulong block = (ulong)table[here / KV_BLOCK] * (KV_BLOCK * HEAD_DIM);
      __global const KV_ELEMENT *from = keys + block + here % KV_BLOCK;
      const int share_begin = lid / KEYS * SHARE_DIMS;
#pragma unroll
      for (int i = 0; i < SHARE_DIMS; ++i) {
        const int dim = share_begin + i;
        if (HEAD_DIM % SHARES == 0 || dim < HEAD_DIM) {
          share += query[dim] * LOAD_KV(dim * KV_BLOCK, from);
        }
      }
    }
    shares[lid] = share;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < KEYS) {
      float score = 0.0f;
      for (int i = 0; i < SHARES; ++i) score += shares[i * KEYS + lid];
      scores[lid] = here < last ? score : -INFINITY;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float high = highest;
#pragma unroll 16
    for (int i = 0; i < KEYS; ++i) high = max(high, scores[i]);
    if (lid < KEYS) weights[lid] = here < last ? exp(scores[lid] - high) : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float shrink = exp(highest - high);
    highest = high;
    total *= shrink;
    sum *= shrink;
#pragma unroll 16
    for (int i = 0; i < KEYS; ++i) total += weights[i];
    if (part < PARTS) {
      const int count = min(last - begin, KEYS);
      for (int i = 0; i < count; i += KV_BLOCK) {
        const ulong block = (ulong)table[(begin + i) / KV_BLOCK] * (KV_BLOCK * HEAD_DIM);
        __global const KV_ELEMENT *from = values + block + d;
        const int in_block = min(count - i, KV_BLOCK);
#pragma unroll
        for (int j = 0; j < PART_KEYS; ++j) {
          const int in_part = (int)part * PART_KEYS + j;
          if (in_part < in_block) {
            sum += weights[i + in_part] * LOAD_KV(in_part * HEAD_DIM, from);
          }
        }
      }
    }
  }
  shares[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid >= HEAD_DIM) return;
  for (int i = 1; i < PARTS; ++i) sum += shares[i * HEAD_DIM + lid];
  if (splits == 1) {
    y[y_begin + row * y_stride + head * HEAD_DIM + lid] = sum / total;
    return;
  }
  partials += partials_begin + ((row * n_heads + head) * splits + split) * SPLIT_FLOATS;
  partials[lid] = sum;
  if (lid == 0) {
    partials[HEAD_DIM] = highest;
    partials[HEAD_DIM + 1] = total;
  }
}

// Local size: HEAD_DIM. Global size: heads * HEAD_DIM, rows.
__kernel void join_splits(__global const float *partials, ulong partials_begin, uint splits,
                          uint n_heads,
                          __global float *y, ulong y_begin, uint y_stride) {
  const uint head = get_group_id(0);
  const ulong row = get_group_id(1);
  const uint lid = get_local_id(0);
  partials += partials_begin + (row * n_heads + head) * splits * SPLIT_FLOATS;
  float highest = -INFINITY;
  for (uint i = 0; i < splits; ++i) {
    highest = max(highest, partials[i * SPLIT_FLOATS + HEAD_DIM]);
  }
  float sum = 0.0f;
  float total = 0.0f;
  for (uint i = 0; i < splits; ++i) {
    __global const float *part = partials + i * SPLIT_FLOATS;
    const float weight = exp(part[HEAD_DIM] - highest);
    sum += weight * part[lid];
    total += weight * part[HEAD_DIM + 1];
  }
  y[y_begin + row * y_stride + head * HEAD_DIM + lid] = sum / total;
}
#endif
