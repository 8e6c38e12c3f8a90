// A program of products of slices of one weight, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "troika/device/device.h"
#include "troika/model/weights.h"

namespace troika::device::cpu::testing {

// Q8_0 weights of some 64-weight rows, whose bytes tell where they lie.
class Slices {
 public:
  explicit Slices(int64_t outputs, int64_t inputs = 64) {
    weight.type = model::TensorType::kQ8_0;
    weight.rows = outputs;
    weight.cols = inputs;
    stored.resize(static_cast<size_t>(weight.bytes()));
    for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::byte>(i * 7 % 251);
    weight.data = stored.data();
    program.graph = &graph;
    program.max_rows = 1;
  }

  // A product of outputs [n_begin, n_begin + n) and inputs [k_begin, k_begin + k).
  void add(int64_t n_begin, int64_t n, int64_t k_begin, int64_t k) {
    graph::Op op;
    op.kind = graph::OpKind::kMatMul;
    op.weight = &weight;
    op.n_begin = n_begin;
    op.k_begin = k_begin;
    op.inputs = {tensor(k)};
    op.output = tensor(n);
    program.ops.push_back(static_cast<graph::OpId>(graph.ops.size()));
    program.outputs.push_back(op.output);
    graph.ops.push_back(op);
  }

  const std::byte* at(int64_t output, int64_t input) const {
    return weight.data + output * weight.row_bytes() + model::row_bytes(weight.type, input);
  }

  std::vector<std::byte> stored;
  model::Weight weight;
  graph::Graph graph;
  Program program;

 private:
  graph::TensorId tensor(int64_t width) {
    graph::Tensor tensor;
    tensor.width = width;
    graph.tensors.push_back(tensor);
    const auto id = static_cast<graph::TensorId>(graph.tensors.size() - 1);
    program.tensors.push_back(id);
    return id;
  }
};

}  // namespace troika::device::cpu::testing
