// Builds the header of a GGUF v3 file. The data of the tensors follows it, each at its offset, and
// is written by the caller, so that a file larger than memory can be made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/model/tensor_type.h"

namespace troika::model {

class GgufWriter {
 public:
  static constexpr uint64_t kAlignment = 32;  // the format's default

  // Metadata; each key once.
  void add_uint32(std::string_view key, uint32_t value);
  void add_float(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_int32s(std::string_view key, std::span<const int32_t> values);

  // A matrix of rows x cols, or a vector if rows is 0. `cols` is a multiple of the type's block.
  void add_tensor(std::string_view name, TensorType type, int64_t rows, int64_t cols);

  struct Tensor {
    std::string name;
    TensorType type = TensorType::kF32;
    int64_t rows = 0;  // 1 for a vector
    int64_t cols = 0;
    uint64_t offset = 0;  // from the start of the data; the gaps between tensors are zeros
    uint64_t bytes = 0;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }

  // Everything before the data, padding included.
  std::vector<std::byte> header() const;
  // From the first tensor to the end of the last, padding included.
  uint64_t data_bytes() const { return data_bytes_; }

 private:
  void add_key(std::string_view key, uint32_t value_type);

  std::vector<std::byte> metadata_;
  uint64_t n_metadata_ = 0;
  std::vector<std::byte> table_;
  std::vector<Tensor> tensors_;
  uint64_t data_bytes_ = 0;
};

}  // namespace troika::model
