// What devices have to compute for a model: its shapes, each once, with the layers that share it.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/graph/graph.h"

namespace troika::profile {

// Weights that are alike: the same products in every layer.
struct ProductShape {
  int64_t n = 0;
  int64_t k = 0;
  model::TensorType type = model::TensorType::kF32;
  bool in_layers = true;  // false: of the head
  std::vector<const model::Weight*> weights;

  double bits() const;
  double weight_bytes() const {
    return static_cast<double>(n) * static_cast<double>(k) * bits() / 8;
  }
};

struct ModelWork {
  std::vector<ProductShape> products;
  graph::HeadShape heads;  // of the layers' attention; n_heads 0: there is none
  int64_t hidden = 0;
  int64_t ffn = 0;

  // The shape with the most work in the layers.
  const ProductShape& main() const;
};

ModelWork work_of(const graph::Graph& graph);

}  // namespace troika::profile
