// A Problem: a small graph, its weights, and the batches that pass through it, with their inputs.
// The runner gives it to a device, the reference computes what should come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "troika/device/conformance/kv_cells.h"
#include "troika/device/conformance/random_data.h"
#include "troika/device/device.h"

namespace troika::device::conformance {

// One batch. Rows of the inputs follow each other without gaps, in the order of Problem::inputs.
struct Pass {
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<SequenceView> sequences;  // block tables are the problem's
  std::vector<int32_t> logit_rows;
  int64_t first_logit_row = 0;
  std::vector<std::vector<float>> inputs;

  int64_t n_rows() const { return static_cast<int64_t>(tokens.size()); }
  // Rows that tensors must have room for.
  int64_t rows_needed() const;
};

// Not movable: programs and batches point into it.
struct Problem {
  Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  graph::Graph graph;
  Program program;  // max_rows is for the runner to set
  std::deque<model::Weight> weights;
  std::deque<std::vector<std::byte>> stored;  // what the weights point to
  // Filled from outside: tensors with memory of their own, not windows.
  std::vector<graph::TensorId> inputs;
  KvCells kv;  // as it is before the first pass
  std::vector<std::vector<int32_t>> block_tables;
  std::vector<Pass> passes;
};

// One sequence of a problem: tokens that the KV cache holds already, and how many rows it has in
// each pass (0: not in it).
struct SequencePlan {
  int64_t history = 0;
  std::vector<int64_t> chunks;
};

struct BatchPlan {
  std::vector<SequencePlan> sequences;
  bool contiguous_blocks = false;   // else block tables are shuffled
  bool keys_written = false;        // the cache holds the rows' own keys and values, too
  std::vector<int32_t> logit_rows;  // of every pass; empty: each sequence's last row
  int64_t first_logit_row = 0;
};

// Which part of a stored matrix a product uses; zeros: all of it.
struct WeightSlice {
  int64_t n_begin = 0;
  int64_t n = 0;
  int64_t k_begin = 0;
};

// Puts a Problem together. Everything that is read and not written is filled with random data.
class ProblemBuilder {
 public:
  explicit ProblemBuilder(std::string_view seed);

  // Shape of the KV cache and of the graph's layers; needed by KV operators.
  void kv_cache(KvType type, int64_t n_layers, int64_t n_kv_heads, int64_t head_dim);

  graph::TensorId input(int64_t width, Spread spread = Spread::kNormal,
                        graph::RowCount rows = graph::RowCount::kTokens);
  // A table of cosines and sines for `rope_dim`, as kRopeTable would write it, but an input.
  graph::TensorId rope_table_input(int64_t rope_dim);
  // Memory for windows to be written to.
  graph::TensorId frame(int64_t width);
  graph::TensorId window(graph::TensorId of, int64_t begin, int64_t width);

  graph::TensorId embed(model::TensorType type, int64_t n_vocab, int64_t width);
  graph::TensorId rope_table(int64_t rope_dim);
  graph::TensorId rms_norm(graph::TensorId x);
  // The weight has `rows` outputs and `cols` inputs; the slice's inputs are as many as x is wide.
  graph::TensorId mat_mul(graph::TensorId x, model::TensorType type, int64_t rows, int64_t cols,
                          WeightSlice slice = {});
  graph::TensorId rope(graph::TensorId x, graph::TensorId table, const graph::HeadShape& heads);
  graph::TensorId kv_write(graph::TensorId k, graph::TensorId v, const graph::HeadShape& heads,
                           int32_t layer = 0);
  // `kv` < 0: reads what the cache holds already.
  graph::TensorId attention(graph::TensorId q, graph::TensorId kv, const graph::HeadShape& heads,
                            int32_t layer = 0);
  graph::TensorId silu_mul(graph::TensorId gate, graph::TensorId up);
  graph::TensorId add(std::vector<graph::TensorId> terms);
  graph::TensorId concat(std::vector<graph::TensorId> parts);
  graph::TensorId gather_rows(graph::TensorId x);

  // The next operator writes to this window instead of a tensor of its own.
  void write_next_to(graph::TensorId window) { target_ = window; }
  void output(graph::TensorId tensor);
  void keep_inputs_stationary() { problem_->program.input_stationary = true; }

  std::shared_ptr<Problem> finish(const BatchPlan& batch);

 private:
  graph::TensorId add_tensor(int64_t width, graph::RowCount rows);
  graph::TensorId add_op(graph::Op op, int64_t width, graph::RowCount rows);
  const model::Weight* add_weight(model::TensorType type, int64_t rows, int64_t cols, float scale);
  int64_t width(graph::TensorId tensor) const;
  graph::RowCount rows(graph::TensorId tensor) const;
  void make_block_tables(const BatchPlan& batch);
  void fill_kv(const BatchPlan& batch);
  void make_passes(const BatchPlan& batch);
  void fill_inputs(Pass& pass);

  std::shared_ptr<Problem> problem_;
  RandomData random_;
  std::vector<Spread> spreads_;  // of the inputs
  graph::TensorId rope_input_ = -1;
  graph::TensorId target_ = -1;
  int64_t n_vocab_ = 1;
};

}  // namespace troika::device::conformance
