// Attention of few rows over the block KV cache by online softmax: the query heads of one KV head
// together, so that its keys and values are read once. A work-group takes a block of KV_BLOCK keys at
// a time, for some of the blocks (a split). Keys lie [block][dim][KV_BLOCK], values
// [block][KV_BLOCK][dim].
//
// Several splits leave their sums in `partials`, behind those of all splits their largest scores and
// sums of weights, and the group that is the last one to do so joins them: `counters` has a zero for
// each KV head of each row, before and after.
//
// TOGETHER: only the buffers of the queries and of keys and values are given; all else lies where the
// queries do.
//
// `rows` in the batch: for every row the place of its sequence's block table and its position.
// Local size: GROUP. Global size: KV heads * splits * GROUP, rows.

#define GROUP 256
// Work-items that share a key, and dimensions of each.
#define SHARES (GROUP / KV_BLOCK)
#define SHARE_DIMS ((HEAD_DIM + SHARES - 1) / SHARES)
// Parts of a block's values: a work-item has one dimension of a part.
#define PARTS (GROUP / HEAD_DIM)
#define PART_KEYS ((KV_BLOCK + PARTS - 1) / PARTS)
#define SCORES (QUERIES * KV_BLOCK)
#define OUTPUTS (QUERIES * HEAD_DIM)
#define MOST_SPLITS 64
// Sums of so many splits are asked for together.
#define AT_ONCE 20

#if EMULATE
#define FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)
float fresh(__global const float *from) { return *(__global const volatile float *)from; }
float2 fresh_two(__global const float *from) { return (float2)(fresh(from), fresh(from + 1)); }
#else
#define FENCE asm volatile("fence.acq_rel.gpu;" ::: "memory")
// What another work-group wrote.
float fresh(__global const float *from) {
  float v;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(from));
  return v;
}
float2 fresh_two(__global const float *from) {
  float2 v;
  asm volatile("ld.relaxed.gpu.global.v2.f32 {%0,%1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(from));
  return v;
}
#endif

// Of KV_BLOCK floats that lie on a vector.
float largest_of(__local const float *values, float high) {
  __local const float4 *fours = (__local const float4 *)values;
  float4 most = (float4)high;
#pragma unroll
  for (int i = 0; i < KV_BLOCK / 4; ++i) most = fmax(most, fours[i]);
  return fmax(fmax(most.x, most.y), fmax(most.z, most.w));
}
float sum_of(__local const float *values) {
  __local const float4 *fours = (__local const float4 *)values;
  float4 sum = (float4)0.0f;
#pragma unroll
  for (int i = 0; i < KV_BLOCK / 4; ++i) sum += fours[i];
  return (sum.x + sum.y) + (sum.z + sum.w);
}

// The outputs of a KV head from the sums of its splits, two to a work-item. `facts` gets largest scores
// and behind them sums of weights, `factors` what a split counts.
void join(__global const float *partials, uint splits, __global float *y, __local float *facts,
          __local float *factors) {
  const uint lid = get_local_id(0);
  const uint count = QUERIES * splits;
  for (uint first = 0; first < OUTPUTS; first += 2 * GROUP) {
    const uint i = first + 2 * lid;
    const bool used = i < OUTPUTS;
    const uint n = used ? i / HEAD_DIM : 0;
    __global const float *from = partials + (used ? i : 0);
    // Asked for together, and before the rest: each takes as long as all do.
    float2 values[AT_ONCE];
#pragma unroll
    for (uint s = 0; s < AT_ONCE; ++s) values[s] = fresh_two(from + min(s, splits - 1) * OUTPUTS);
    if (first == 0) {
      for (uint f = lid; f < 2 * count; f += GROUP) facts[f] = fresh(partials + splits * OUTPUTS + f);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint f = lid; f < count; f += GROUP) {
        float highest = -INFINITY;
        for (uint g = f % QUERIES; g < count; g += QUERIES) highest = fmax(highest, facts[g]);
        factors[f] = exp(facts[f] - highest);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    float2 sum = (float2)0.0f;
    float total = 0.0f;
#pragma unroll
    for (uint s = 0; s < AT_ONCE; ++s) {
      if (s >= splits) continue;
      const float factor = factors[s * QUERIES + n];
      sum += factor * values[s];
      total += factor * facts[count + s * QUERIES + n];
    }
    for (uint s = AT_ONCE; s < splits; ++s) {
      const float factor = factors[s * QUERIES + n];
      sum += factor * fresh_two(from + s * OUTPUTS);
      total += factor * facts[count + s * QUERIES + n];
    }
    if (used) vstore2(sum / total, 0, y + i);
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void attention_few(__global const float *q, ulong q_begin, uint q_stride,
                   __global const KV_ELEMENT *kv, ulong k_first, ulong head_step, ulong v_offset,
                   __global const int *batch, ulong batch_begin, uint rows,
                   __global float *y, ulong y_begin, uint y_stride, float scale,
                   __global float *partials, ulong partials_begin, uint splits,
                   __global uint *counters, ulong counters_begin) {
  __local float query[OUTPUTS] __attribute__((aligned(16)));  // [dim][query]
  __local float shares[GROUP * QUERIES];  // [share][query][key]; of values [part][query][dim]
  __local float scores[SCORES] __attribute__((aligned(16)));  // [query][key]
  __local float weights[SCORES] __attribute__((aligned(16))); // [key][query]
  __local float shrinks[QUERIES];
  __local float facts[2 * QUERIES * MOST_SPLITS];
  __local float factors[QUERIES * MOST_SPLITS];
  __local uint earlier;
#if TOGETHER
  batch = (__global const int *)q;
  y = partials = (__global float *)q;
  counters = (__global uint *)q;
#endif
  batch += batch_begin;
  const uint kv_head = get_group_id(0) / splits;
  const uint split = get_group_id(0) % splits;
  const ulong row = get_group_id(1);
  const uint lid = get_local_id(0);
  const uint key = lid % KV_BLOCK;
  const uint share = lid / KV_BLOCK;
  const uint d = lid % HEAD_DIM;
  const uint part = lid / HEAD_DIM;
  __global const KV_ELEMENT *keys = kv + k_first + kv_head * head_step + key;
  __global const KV_ELEMENT *values = kv + k_first + kv_head * head_step + v_offset + d;
  __global const int *table = batch + batch[rows + 2 * row];
  const int n_keys = batch[rows + 2 * row + 1] + 1;
  const int blocks = (n_keys + KV_BLOCK - 1) / KV_BLOCK;
  const int per_split = (blocks + (int)splits - 1) / (int)splits;
  const int first = (int)split * per_split;
  const int last = min(blocks, first + per_split);
  q += q_begin + row * q_stride + kv_head * OUTPUTS;
  for (uint i = lid; i < OUTPUTS; i += GROUP) {
    query[i % HEAD_DIM * QUERIES + i / HEAD_DIM] = q[i] * scale;
  }
  float sums[QUERIES];
#pragma unroll
  for (int i = 0; i < QUERIES; ++i) sums[i] = 0.0f;
  float highest = -INFINITY;
  float total = 0.0f;
  for (int b = first; b < last; ++b) {
    const ulong block = (ulong)table[b] * (KV_BLOCK * HEAD_DIM);
    const int count = min(n_keys - b * KV_BLOCK, KV_BLOCK);
    float k[SHARE_DIMS];
    float v[PART_KEYS];
#pragma unroll
    for (int i = 0; i < SHARE_DIMS; ++i) {
      const int dim = (int)share * SHARE_DIMS + i;
      k[i] = HEAD_DIM % SHARES == 0 || dim < HEAD_DIM ? LOAD_KV(dim * KV_BLOCK, keys + block) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < PART_KEYS; ++i) {
      const int in_block = (int)part * PART_KEYS + i;
      v[i] = part < PARTS && in_block < count ? LOAD_KV(in_block * HEAD_DIM, values + block) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float share_sums[QUERIES];
#pragma unroll
    for (int n = 0; n < QUERIES; ++n) share_sums[n] = 0.0f;
#pragma unroll
    for (int i = 0; i < SHARE_DIMS; ++i) {
      const int dim = min((int)share * SHARE_DIMS + i, HEAD_DIM - 1);
#pragma unroll
      for (int n = 0; n < QUERIES; ++n) share_sums[n] += query[dim * QUERIES + n] * k[i];
    }
#pragma unroll
    for (int n = 0; n < QUERIES; ++n) shares[(share * QUERIES + n) * KV_BLOCK + key] = share_sums[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < SCORES) {
      float score = 0.0f;
#pragma unroll
      for (int s = 0; s < SHARES; ++s) score += shares[s * SCORES + lid];
      scores[lid] = (int)key < count ? score : -INFINITY;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < SCORES) {
      const uint n = lid / KV_BLOCK;
      const float high = largest_of(scores + n * KV_BLOCK, highest);
      const float shrink = exp(highest - high);
      const float weight = exp(scores[lid] - high);
      highest = high;
      total = total * shrink + weight;
      weights[key * QUERIES + n] = weight;
      if (key == 0) shrinks[n] = shrink;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < QUERIES; ++n) sums[n] *= shrinks[n];
#pragma unroll
    for (int i = 0; i < PART_KEYS; ++i) {
      const int in_block = min((int)part * PART_KEYS + i, KV_BLOCK - 1);
#pragma unroll
      for (int n = 0; n < QUERIES; ++n) sums[n] += weights[in_block * QUERIES + n] * v[i];
    }
  }
  if (part < PARTS) {
#pragma unroll
    for (int n = 0; n < QUERIES; ++n) shares[(part * QUERIES + n) * HEAD_DIM + d] = sums[n];
  }
  const ulong group = row * (get_num_groups(0) / splits) + kv_head;
  partials += partials_begin + group * splits * (OUTPUTS + 2 * QUERIES);
  if (lid < SCORES) {
    scores[lid] = total;
    if (key == 0) partials[splits * OUTPUTS + split * QUERIES + lid / KV_BLOCK] = highest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  y += y_begin + row * y_stride + kv_head * OUTPUTS;
  for (uint i = lid; i < OUTPUTS; i += GROUP) {
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) sum += shares[p * OUTPUTS + i];
    if (splits == 1) {
      y[i] = sum / sum_of(scores + i / HEAD_DIM * KV_BLOCK);
    } else {
      partials[split * OUTPUTS + i] = sum;
    }
  }
  if (splits == 1) return;
  if (lid < QUERIES) {
    partials[splits * (OUTPUTS + QUERIES) + split * QUERIES + lid] = sum_of(scores + lid * KV_BLOCK);
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (lid == 0) {
    FENCE;
    earlier = atomic_inc((__global volatile uint *)counters + counters_begin + group);
    FENCE;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (earlier + 1 != splits) return;
  if (lid == 0) counters[counters_begin + group] = 0;
  join(partials, splits, y, facts, factors);
}
