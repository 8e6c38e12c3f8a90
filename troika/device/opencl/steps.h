// What the `opencl` device makes of a Program: steps of one launch or a few, with operators folded
// into each other where that saves launches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "troika/device/device.h"
#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/launches.h"
#include "troika/device/opencl/weights.h"

namespace troika::device::opencl {

// Index into Program::tensors; -1: none.
using TensorIndex = int32_t;

enum class StepKind {
  kProducts,  // up to kMostProducts of the same inputs and weight type
  kKvWrite,   // with the RoPE of keys and of queries folded in
  kOther,     // one operator
};

struct Product {
  const graph::Op* op = nullptr;
  graph::WeightSlice slice;
  TensorIndex output = -1;
  std::shared_ptr<const DeviceWeight> weight;  // set when compiled
};

struct Step {
  StepKind kind = StepKind::kOther;
  const graph::Op* op = nullptr;  // kOther, kKvWrite; of products the first
  std::vector<TensorIndex> inputs;
  TensorIndex output = -1;
  graph::RowCount rows = graph::RowCount::kTokens;
  std::shared_ptr<const DeviceWeight> weight;  // kEmbed: rows; kRmsNorm: factors
  std::shared_ptr<Launches> launches = std::make_shared<Launches>();

  // kProducts; inputs[0] is what they multiply.
  std::vector<Product> products;
  TensorIndex add = -1;             // a residual that the one product adds
  const graph::Op* norm = nullptr;  // makes inputs[0] from `normed`; nobody else reads it
  TensorIndex normed = -1;
  const graph::Op* silu = nullptr;  // output = silu(first) * second; nobody else reads those
  // Comes behind queries, keys and values, which nobody else reads: one launch may do both.
  std::shared_ptr<const Step> kv_write;

  // kKvWrite: operators whose outputs are not needed otherwise, and the query's RoPE beside them.
  const graph::Op* key_rope = nullptr;
  TensorIndex key_table = -1;
  const graph::Op* query_rope = nullptr;
  TensorIndex query = -1;
  TensorIndex rotated_query = -1;
};

std::vector<Step> make_steps(const Program& program);

}  // namespace troika::device::opencl
