#include "troika/profile/measure/model_work.h"

#include <algorithm>

namespace troika::profile {

double ProductShape::bits() const {
  return 8 * static_cast<double>(model::row_bytes(type, k)) / static_cast<double>(k);
}

const ProductShape& ModelWork::main() const {
  return *std::max_element(products.begin(), products.end(), [](const auto& a, const auto& b) {
    if (a.in_layers != b.in_layers) return b.in_layers;
    return a.n * a.k < b.n * b.k;
  });
}

ModelWork work_of(const graph::Graph& graph) {
  ModelWork work;
  for (const graph::Op& op : graph.ops) {
    if (op.kind == graph::OpKind::kAttention && work.heads.n_heads == 0) work.heads = op.heads;
    if (op.kind == graph::OpKind::kEmbed) work.hidden = graph.tensor(op.output).width;
    if (op.kind == graph::OpKind::kSiluMul) work.ffn = graph.tensor(op.output).width;
    if (op.kind != graph::OpKind::kMatMul) continue;
    const graph::WeightSlice slice = graph::weight_slice(graph, op);
    const auto same = [&](const ProductShape& shape) {
      return shape.n == slice.n && shape.k == slice.k && shape.type == slice.weight->type;
    };
    auto found = std::find_if(work.products.begin(), work.products.end(), same);
    if (found == work.products.end()) {
      work.products.push_back({slice.n, slice.k, slice.weight->type, op.layer >= 0, {}});
      found = work.products.end() - 1;
    }
    found->weights.push_back(slice.weight);
  }
  return work;
}

}  // namespace troika::profile
