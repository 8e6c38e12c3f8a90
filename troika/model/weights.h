// The weights of a model: named matrices in page-aligned memory of their own.
//
// Weights are read, not mapped: drivers cannot import a mapped file's pages, and a file that
// shrinks while mapped would kill the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/model/tensor_type.h"

namespace troika::model {

// A matrix W[rows, cols], row-major: rows = outputs (N), cols = inputs (K). A vector has rows = 1.
// `data` is borrowed from the Weights that holds it.
struct Weight {
  std::string name;
  TensorType type = TensorType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;

  int64_t row_bytes() const { return model::row_bytes(type, cols); }
  int64_t bytes() const { return rows * row_bytes(); }
};

}  // namespace troika::model
