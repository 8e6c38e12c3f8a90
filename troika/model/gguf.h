// Reads the header of a GGUF file (v2, v3): metadata and the table of tensors, all checked before
// anything is used. Reads through a bounded buffer; allocates no more than the file can hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

// A metadata value: integers are widened, floats too; arrays hold one kind of element.
struct GgufArray;
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string,
                               std::shared_ptr<const GgufArray>>;
struct GgufArray {
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>,
               std::vector<bool>, std::vector<std::string>>
      values;
  size_t size() const;
};

struct GgufTensor {
  std::string name;
  uint32_t type_id = 0;
  std::vector<uint64_t> dims;  // GGUF order: dims[0] is the contiguous one
  uint64_t file_offset = 0;    // from the start of the file
  uint64_t bytes = 0;          // 0 when the type is not supported here
};

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t file_bytes = 0;
  uint64_t data_offset = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;

  // Typed look-up: nullopt when absent, kInvalidData when of another kind or out of range.
  Result<std::optional<uint64_t>> get_uint(std::string_view key) const;
  Result<std::optional<double>> get_float(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string>> get_string(std::string_view key) const;
};

// A random-access source of bytes: a regular file, or memory in tests and fuzzers.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; kIo on a short read (the file shrank).
  virtual Status read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// Opens a regular file (through symbolic links); kInvalidArgument for a directory, FIFO or device.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes);

Result<GgufHeader> read_gguf_header(const ByteSource& source);

}  // namespace troika::model
