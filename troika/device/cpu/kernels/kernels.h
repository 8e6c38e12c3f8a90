// The compute kernels of the `cpu` device: one table of functions per instruction set, chosen at
// run time. Kernels are single-threaded, allocate nothing, and know no graph: pointers and sizes
// only.
//
// Bits: every output of a kernel depends only on its own row's inputs. The reduction over K runs in
// one fixed order whatever M is, whichever range of N is asked for, and however the rows of a batch
// are split, so that a row has the same bits alone, in a batch, in chunks, on any number of
// threads. Different instruction sets may round differently from each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/kv_layout.h"
#include "troika/model/k_quants.h"
#include "troika/model/rope_pairs.h"
#include "troika/model/tensor_type.h"

namespace troika::device::cpu {

// y[m, n] = (add ? add[m, n] : 0) + sum_k x[m, k] * w[n, k]   for n in [0, n)
struct MatMulArgs {
  const float* x = nullptr;
  int64_t x_stride = 0;  // floats from row to row
  int64_t m = 0;
  const std::byte* w = nullptr;  // first output's row
  int64_t w_stride = 0;          // bytes from output to output; rows have 2-byte alignment only
  int64_t n = 0;
  int64_t k = 0;  // a multiple of the type's block; any size for plain types
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* add = nullptr;  // may be y itself
  int64_t add_stride = 0;
  float* scratch = nullptr;  // KernelTable::matmul_scratch_floats(m, k) floats, 64-byte aligned
  // Where the caller goes on to read weights, if it knows: few rows fetch them ahead.
  const std::byte* next_w = nullptr;
};

// Attention of n_rows consecutive tokens of one sequence for one KV head and the n_group query
// heads that share it. Row i has position first_position + i and sees keys 0 .. first_position + i.
//   out[i, g, :] = softmax(scale * q[i, g, :] . K^T) V
// Keys are taken in blocks of kKvBlockTokens in ascending order. Slots after the last key that a
// row sees may hold anything, NaN too, and must not influence it.
struct AttentionArgs {
  const float* q = nullptr;  // row 0, first head of the group; heads are head_dim floats apart
  int64_t q_stride = 0;      // floats from row to row
  int64_t n_rows = 0;
  int64_t n_group = 0;
  int64_t head_dim = 0;
  int64_t first_position = 0;
  const void* k = nullptr;  // block 0 of this head, see kv_layout.h
  const void* v = nullptr;
  KvType kv_type = KvType::kF32;
  const int32_t* block_table = nullptr;  // block numbers of the sequence, in order of position
  float scale = 0;
  float* out = nullptr;  // as q
  int64_t out_stride = 0;
  float* scratch = nullptr;  // KernelTable::attention_scratch_floats(n_group, head_dim) floats
};

// Writes the K and V of one token and one KV head into its block.
struct KvWriteArgs {
  const float* k = nullptr;  // head_dim floats
  const float* v = nullptr;
  int64_t head_dim = 0;
  void* k_block = nullptr;  // the block's first element
  void* v_block = nullptr;
  int64_t slot = 0;  // position within the block
  KvType kv_type = KvType::kF32;
};

using model::RopePairs;

struct KernelTable {
  std::string_view name;  // "portable", "avx2", "avx512", "neon"

  // Dispatches on the weight's type. All supported types, any m >= 1, n >= 1.
  void (*matmul)(model::TensorType type, const MatMulArgs& args) = nullptr;
  // Enough for fewer rows, too.
  int64_t (*matmul_scratch_floats)(int64_t m, int64_t k) = nullptr;

  // y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* y) = nullptr;

  // Rotates the first rope_dim of each head of one row in place. cos_sin holds rope_dim / 2 pairs
  // (cos, sin) for the row's position.
  void (*rope)(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, RopePairs pairs,
               const float* cos_sin) = nullptr;

  // y = silu(gate) * up, silu(z) = z / (1 + exp(-z)); y may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* y) = nullptr;

  void (*add)(const float* a, const float* b, int64_t n, float* y) = nullptr;

  // One stored row to floats.
  void (*dequantize_row)(model::TensorType type, const std::byte* row, int64_t n,
                         float* y) = nullptr;

  void (*attention)(const AttentionArgs& args) = nullptr;
  int64_t (*attention_scratch_floats)(int64_t n_group, int64_t head_dim) = nullptr;
  void (*kv_write)(const KvWriteArgs& args) = nullptr;

  // Measures nothing itself: runs `rounds` rounds of independent multiply-adds in registers on
  // sink[0..2] and returns the floating point operations done (2 for each multiply-add).
  double (*fma_burst)(int64_t rounds, float* sink) = nullptr;
};

// The tables that this machine can run, fastest first; the last is always "portable".
std::span<const KernelTable* const> available_kernels();

// By name; nullptr if this build or this machine lacks it.
const KernelTable* find_kernels(std::string_view name);
// By a name that a user gave, or the fastest if it is empty. kUnsupported with the names that there
// are.
Result<const KernelTable*> choose_kernels(std::string_view name);

}  // namespace troika::device::cpu
