// Puts a Graph together, operator by operator; the files in arch/ use it.
#pragma once

#include <string>
#include <string_view>

#include "troika/graph/graph.h"

namespace troika::graph {

class Builder {
 public:
  explicit Builder(const model::Model& model);

  // Where the following operators stand.
  void enter(Stage stage, int32_t layer);

  TensorId embed(std::string_view weight);
  TensorId rope_table(std::vector<double> inv_freq);
  TensorId rms_norm(TensorId x, std::string_view weight, float eps);
  TensorId mat_mul(TensorId x, std::string_view weight, std::string_view name);
  TensorId rope(TensorId x, TensorId table, const HeadShape& heads);
  TensorId kv_write(TensorId k, TensorId v, const HeadShape& heads);
  TensorId attention(TensorId q, TensorId kv, const HeadShape& heads);
  TensorId silu_mul(TensorId gate, TensorId up);
  TensorId add(TensorId a, TensorId b);
  TensorId gather_rows(TensorId x);

  // The finished graph; the first error met on the way (a missing tensor, a shape that does not
  // fit).
  Result<Graph> finish(TensorId logits);

 private:
  TensorId push(Op op, std::string_view name, int64_t width, RowCount rows);
  const model::Weight* weight(std::string_view name, int64_t cols);
  int64_t width(TensorId id) const;

  Graph graph_;
  Stage stage_ = Stage::kInput;
  int32_t layer_ = -1;
  Status status_;
};

}  // namespace troika::graph
