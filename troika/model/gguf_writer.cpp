#include "troika/model/gguf_writer.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace troika::model {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is written as it lies in memory");

constexpr uint32_t kVersion = 3;
// Value types, as numbered by the format.
constexpr uint32_t kUint32 = 4;
constexpr uint32_t kInt32 = 5;
constexpr uint32_t kFloat32 = 6;
constexpr uint32_t kBool = 7;
constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;

void append_bytes(std::vector<std::byte>& out, const void* data, size_t n) {
  if (n == 0) return;
  const size_t at = out.size();
  out.resize(at + n);
  std::memcpy(out.data() + at, data, n);
}

template <class T>
void append(std::vector<std::byte>& out, T value) {
  append_bytes(out, &value, sizeof(T));
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  append_bytes(out, text.data(), text.size());
}

uint64_t aligned(uint64_t n) {
  return (n + GgufWriter::kAlignment - 1) / GgufWriter::kAlignment * GgufWriter::kAlignment;
}

}  // namespace

void GgufWriter::add_key(std::string_view key, uint32_t value_type) {
  append_string(metadata_, key);
  append(metadata_, value_type);
  ++n_metadata_;
}

void GgufWriter::add_uint32(std::string_view key, uint32_t value) {
  add_key(key, kUint32);
  append(metadata_, value);
}

void GgufWriter::add_float(std::string_view key, float value) {
  add_key(key, kFloat32);
  append(metadata_, value);
}

void GgufWriter::add_bool(std::string_view key, bool value) {
  add_key(key, kBool);
  append<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  add_key(key, kString);
  append_string(metadata_, value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  add_key(key, kArray);
  append(metadata_, kString);
  append<uint64_t>(metadata_, values.size());
  for (const std::string& value : values) append_string(metadata_, value);
}

void GgufWriter::add_int32s(std::string_view key, std::span<const int32_t> values) {
  add_key(key, kArray);
  append(metadata_, kInt32);
  append<uint64_t>(metadata_, values.size());
  append_bytes(metadata_, values.data(), values.size_bytes());
}

void GgufWriter::add_tensor(std::string_view name, TensorType type, int64_t rows, int64_t cols) {
  assert(cols > 0 && cols % traits(type).block_weights == 0);
  const int64_t n_rows = rows == 0 ? 1 : rows;
  Tensor tensor{std::string(name),
                type,
                n_rows,
                cols,
                data_bytes_,
                static_cast<uint64_t>(n_rows * row_bytes(type, cols))};
  append_string(table_, name);
  append<uint32_t>(table_, rows == 0 ? 1 : 2);
  append(table_, static_cast<uint64_t>(cols));
  if (rows != 0) append(table_, static_cast<uint64_t>(rows));
  append(table_, static_cast<uint32_t>(type));
  append(table_, tensor.offset);
  data_bytes_ = aligned(tensor.offset + tensor.bytes);
  tensors_.push_back(std::move(tensor));
}

std::vector<std::byte> GgufWriter::header() const {
  std::vector<std::byte> out;
  out.reserve(64 + metadata_.size() + table_.size());
  append_bytes(out, "GGUF", 4);
  append(out, kVersion);
  append<uint64_t>(out, tensors_.size());
  append(out, n_metadata_);
  out.insert(out.end(), metadata_.begin(), metadata_.end());
  out.insert(out.end(), table_.begin(), table_.end());
  out.resize(aligned(out.size()));
  return out;
}

}  // namespace troika::model
