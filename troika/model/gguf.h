// Reads the header of a GGUF file (v2, v3): metadata and the table of tensors, all checked before
// anything is used. Reads through a bounded buffer; allocates no more than the file can hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/byte_source.h"

namespace troika::model {

// A metadata value: integers are widened, floats too; arrays hold one kind of element.
struct GgufArray;
using GgufValue =
    std::variant<uint64_t, int64_t, double, bool, std::string, std::shared_ptr<const GgufArray>>;
struct GgufArray {
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>>
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

// What a header may have and take in memory, hostile or not. The largest vocabularies need half of
// the memory, and the models with the most experts half of the tensors.
inline constexpr uint64_t kMaxHeaderMemory = uint64_t{96} << 20;
inline constexpr uint64_t kMaxMetadataKeys = 65536;
inline constexpr uint64_t kMaxTensors = 131072;

Result<GgufHeader> read_gguf_header(const ByteSource& source);
// Opens `path` and reads its header. If that fails and the name says that the file is one part of
// several, the message says so too.
Result<GgufHeader> read_gguf_file(const std::string& path);
// The error with the file's name before it and, for a file named as a part, that advice after it.
tl::unexpected<Error> in_file(const std::string& path, Error error);

// "32000", "1e-05", "true", "\"text\"", "[1, 2, ... 49152 in all]"; control characters and bytes
// that are not UTF-8 are escaped, strings longer than 200 bytes cut.
std::string to_display(const GgufValue& value, size_t max_elements);
// A name or text from a file, made fit to print: escaped as above, not quoted.
std::string printable(std::string_view text, size_t max_bytes = 100);

}  // namespace troika::model
