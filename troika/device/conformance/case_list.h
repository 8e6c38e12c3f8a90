// What the files of the catalogue share: how cases are named, batched and cut.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "troika/device/conformance/catalogue.h"

namespace troika::device::conformance {

class CaseList {
 public:
  CaseList(std::string group, const DeviceInfo& info);

  // `body` puts the operators in and names the outputs; `round` is as Case::round.
  void add(std::string name, BatchPlan batch, std::function<void(ProblemBuilder&)> body,
           int round = 0);

  const DeviceInfo& info() const { return info_; }
  // The standard length that cases walk around: one about as long as a KV block.
  int64_t length() const { return length_; }
  // One token, a few, and length() - 1, itself and + 1 (where there is a longer one).
  const std::vector<int64_t>& row_counts() const { return row_counts_; }
  // The most rows among them.
  int64_t most_rows() const { return row_counts_.back(); }
  // The least multiple of the device's N tile, or of its K tile and the type's block, that is not
  // below `value`.
  int64_t n_cut(int64_t value) const;
  int64_t k_cut(int64_t value, model::TensorType type) const;

  std::vector<Case> take() { return std::move(cases_); }

 private:
  const std::string group_;
  const DeviceInfo& info_;
  int64_t length_ = 0;
  std::vector<int64_t> row_counts_;
  std::vector<Case> cases_;
};

std::string type_name(model::TensorType type);
// Columns that a weight of this type can have: `cols`, or more to fill its last block.
int64_t whole_blocks(int64_t cols, model::TensorType type);

// One prompt of so many rows.
BatchPlan prompt(int64_t rows, int64_t history = 0);
// The rows shared out unevenly among up to three sequences of different ages.
BatchPlan ragged(int64_t rows);

graph::HeadShape head_shape(int64_t n_heads, int64_t group, int64_t head_dim,
                            int64_t first_head = 0);

void add_mat_mul_cases(CaseList& list);
void add_row_cases(CaseList& list, graph::OpKind kind);
void add_rope_cases(CaseList& list);
void add_kv_write_cases(CaseList& list);
void add_attention_cases(CaseList& list);
void add_stage_cases(CaseList& list);

}  // namespace troika::device::conformance
