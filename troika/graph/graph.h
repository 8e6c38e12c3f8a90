// The forward pass as data: tensors and a small set of operators, with no word of devices.
//
// The pass works on flat rows: [T, width], T tokens of any number of sequences. Only RopeTable,
// KvWrite and Attention look at positions and sequences. Products are y[M,N] = x[M,K] W[N,K]^T.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/model.h"
#include "troika/model/rope_pairs.h"

namespace troika::graph {

enum class OpKind : uint8_t {
  kEmbed,       // out[t] = row token(t) of `weight`
  kRopeTable,   // out[t] = (cos, sin) of position(t) * inv_freq[j], j < rope_dim / 2
  kRmsNorm,     // out = x / sqrt(mean(x^2) + eps) * weight                inputs: x
  kMatMul,      // out = x W^T                                             inputs: x
  kRope,        // rotates the first rope_dim of every head                inputs: x, rope table
  kKvWrite,     // stores k and v; out orders readers after it             inputs: k, v
  kAttention,   // causal, over the sequence's KV cache                    inputs: q, KvWrite's out
  kSiluMul,     // out = silu(gate) * up                                   inputs: gate, up
  kAdd,         // out = a + b + ..., from left to right                   inputs: two or more
  kConcat,      // out = the inputs' columns one after another             inputs: one or more
  kGatherRows,  // the rows whose logits are wanted                        inputs: x
};
std::string_view to_string(OpKind kind);

// Where an operator stands in the pass. G1: norm, q/k/v, RoPE, KV write. A: attention. G2: output
// projection and MLP. Between chunks of one prompt the only edge is G1(c-1, l) -> A(c, l).
enum class Stage : uint8_t { kInput, kG1, kAttention, kG2, kHead };
std::string_view to_string(Stage stage);

// How many rows a tensor has in a pass: one for each token, or one for each row of wanted logits.
enum class RowCount : uint8_t { kTokens, kLogits };

// The element type of an edge. The residual stream and partial sums are always FP32.
enum class DType : uint8_t { kF32, kF16, kBF16 };
inline constexpr int64_t dtype_bytes(DType type) { return type == DType::kF32 ? 4 : 2; }

using TensorId = int32_t;
using OpId = int32_t;

struct Tensor {
  std::string name;   // "blk.3.q"
  int64_t width = 0;  // elements of one row; 0 for a tensor that only orders
  RowCount rows = RowCount::kTokens;
  DType type = DType::kF32;
  OpId producer = -1;  // the first operator that writes it
  // Columns [window_begin, window_begin + width) of another tensor's memory, not memory of its own.
  TensorId window_of = -1;
  int64_t window_begin = 0;
};

// Heads of attention, RoPE and KV operators. The tensor at hand holds heads
// [first_head, first_head + n_heads) of the layer's: query heads, or KV heads for k and v.
struct HeadShape {
  int64_t n_heads = 0;
  int64_t first_head = 0;
  int64_t group = 1;  // query heads that share a KV head; 1 for k and v
  int64_t head_dim = 0;
  int64_t rope_dim = 0;
  model::RopePairs rope_pairs = model::RopePairs::kAdjacent;
  float scale = 0;  // of the scores, 1 / sqrt(head_dim)
};

struct Op {
  OpKind kind = OpKind::kAdd;
  Stage stage = Stage::kInput;
  int32_t layer = -1;  // -1 outside the layers
  std::vector<TensorId> inputs;
  TensorId output = -1;
  const model::Weight* weight = nullptr;  // kEmbed, kRmsNorm, kMatMul; owned by the Model
  // kMatMul: the part of the weight that is used: outputs from n_begin on, as many as the output is
  // wide; inputs from k_begin on, as many as the input is wide.
  int64_t n_begin = 0;
  int64_t k_begin = 0;
  float eps = 0;    // kRmsNorm
  HeadShape heads;  // kRope, kKvWrite, kAttention
};

// Immutable once built. Borrows the model's weights: the Model must outlive it.
struct Graph {
  const model::Model* model = nullptr;
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t n_vocab = 0;
  std::vector<double> rope_inv_freq;  // rope_dim / 2 angles per position step, in radians
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // in an order in which they may run
  TensorId logits = -1;

  const Op& op(OpId id) const { return ops[static_cast<size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }

  // The tensor whose memory it is: itself, unless it is a window.
  TensorId memory_of(TensorId id) const;
  // Whether two tensors have elements in common, under whatever names.
  bool overlap(TensorId a, TensorId b) const;
};

// The part of a weight that a product uses: outputs [n_begin, n_begin + n) and inputs
// [k_begin, k_begin + k). Ordered, to be the key of a map.
struct WeightSlice {
  const model::Weight* weight = nullptr;
  int64_t n_begin = 0;
  int64_t n = 0;
  int64_t k_begin = 0;
  int64_t k = 0;

  auto operator<=>(const WeightSlice&) const = default;
};
WeightSlice weight_slice(const Graph& graph, const Op& product);
// Where the stored weights of output n_begin + n begin.
const std::byte* row_of(const WeightSlice& slice, int64_t n);
// The stored rows, without what lies between them.
std::vector<std::byte> gather_rows(const WeightSlice& slice);

// The graph of the model's architecture; kUnsupported for one that has no file in arch/.
Result<Graph> build(const model::Model& model);

// The same pass with only the first `n_layers` layers: what a layer costs can be measured on it.
Graph first_layers(const Graph& graph, int64_t n_layers);

// Multiply-adds of an operator for one row that sees `keys` keys (only Attention looks at those).
int64_t macs_per_row(const Graph& graph, OpId op, int64_t keys);
// Stored bytes of weight that an operator reads, whatever the number of rows (an embedding: per
// row).
int64_t weight_bytes(const Graph& graph, OpId op);

}  // namespace troika::graph
