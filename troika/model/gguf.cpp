#include "troika/model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "troika/model/gguf_reader.h"
#include "troika/model/tensor_type.h"

namespace troika::model {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies in memory");

constexpr uint64_t kMaxKeyBytes = 65535;       // as the format says
constexpr uint64_t kMaxTensorNameBytes = 256;  // the format allows 64
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 24;
constexpr uint64_t kMinTensorRecordBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint64_t kMinMetadataRecordBytes = 8 + 4 + 1;

// Value types of metadata, as numbered by the format.
enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

Result<bool> read_bool(GgufReader& in) {
  ASSIGN_OR_RETURN(const uint8_t byte, in.read<uint8_t>());
  if (byte > 1) return make_error(ErrorCode::kInvalidData, "a bool has the value {}", byte);
  return byte != 0;
}

// `count` numbers stored as Stored, widened to Wide.
template <class Stored, class Wide>
Result<GgufArray> read_numbers(GgufReader& in, uint64_t count) {
  RETURN_IF_ERROR(in.claim(count, sizeof(Stored), sizeof(Wide)));
  std::vector<Wide> values(count);
  for (Wide& value : values) {
    ASSIGN_OR_RETURN(value, in.read<Stored>());
  }
  return GgufArray{std::move(values)};
}

Result<GgufArray> read_bools(GgufReader& in, uint64_t count) {
  RETURN_IF_ERROR(in.claim(count, 1, 1));
  std::vector<bool> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(values[i], read_bool(in));
  }
  return GgufArray{std::move(values)};
}

Result<GgufArray> read_strings(GgufReader& in, uint64_t count) {
  RETURN_IF_ERROR(in.claim(count, sizeof(uint64_t), sizeof(std::string)));
  std::vector<std::string> values(count);
  for (std::string& value : values) {
    ASSIGN_OR_RETURN(value, in.read_string(std::numeric_limits<uint64_t>::max()));
  }
  return GgufArray{std::move(values)};
}

Result<GgufArray> read_array(GgufReader& in) {
  ASSIGN_OR_RETURN(const uint32_t type, in.read<uint32_t>());
  ASSIGN_OR_RETURN(const uint64_t count, in.read<uint64_t>());
  switch (type) {
    case kUint8:
      return read_numbers<uint8_t, uint64_t>(in, count);
    case kInt8:
      return read_numbers<int8_t, int64_t>(in, count);
    case kUint16:
      return read_numbers<uint16_t, uint64_t>(in, count);
    case kInt16:
      return read_numbers<int16_t, int64_t>(in, count);
    case kUint32:
      return read_numbers<uint32_t, uint64_t>(in, count);
    case kInt32:
      return read_numbers<int32_t, int64_t>(in, count);
    case kUint64:
      return read_numbers<uint64_t, uint64_t>(in, count);
    case kInt64:
      return read_numbers<int64_t, int64_t>(in, count);
    case kFloat32:
      return read_numbers<float, double>(in, count);
    case kFloat64:
      return read_numbers<double, double>(in, count);
    case kBool:
      return read_bools(in, count);
    case kString:
      return read_strings(in, count);
    case kArray:
      return make_error(ErrorCode::kUnsupported, "an array of arrays is not supported");
    default:
      break;
  }
  return make_error(ErrorCode::kInvalidData, "unknown array element type {}", type);
}

template <class Stored, class Wide>
Result<GgufValue> read_number(GgufReader& in) {
  ASSIGN_OR_RETURN(const Stored value, in.read<Stored>());
  return GgufValue(static_cast<Wide>(value));
}

Result<GgufValue> read_value(GgufReader& in) {
  ASSIGN_OR_RETURN(const uint32_t type, in.read<uint32_t>());
  switch (type) {
    case kUint8:
      return read_number<uint8_t, uint64_t>(in);
    case kInt8:
      return read_number<int8_t, int64_t>(in);
    case kUint16:
      return read_number<uint16_t, uint64_t>(in);
    case kInt16:
      return read_number<int16_t, int64_t>(in);
    case kUint32:
      return read_number<uint32_t, uint64_t>(in);
    case kInt32:
      return read_number<int32_t, int64_t>(in);
    case kUint64:
      return read_number<uint64_t, uint64_t>(in);
    case kInt64:
      return read_number<int64_t, int64_t>(in);
    case kFloat32:
      return read_number<float, double>(in);
    case kFloat64:
      return read_number<double, double>(in);
    case kBool: {
      ASSIGN_OR_RETURN(const bool value, read_bool(in));
      return GgufValue(value);
    }
    case kString: {
      ASSIGN_OR_RETURN(std::string value, in.read_string(std::numeric_limits<uint64_t>::max()));
      return GgufValue(std::move(value));
    }
    case kArray: {
      ASSIGN_OR_RETURN(GgufArray array, read_array(in));
      return GgufValue(
          std::shared_ptr<const GgufArray>(std::make_shared<GgufArray>(std::move(array))));
    }
    default:
      break;
  }
  return make_error(ErrorCode::kInvalidData, "unknown value type {}", type);
}

Status check_count(const char* what, uint64_t count, uint64_t most) {
  if (count <= most) return {};
  return make_error(ErrorCode::kInvalidData, "{} {} are too many; at most {} are read", count, what,
                    most);
}

Status read_metadata(GgufReader& in, uint64_t count, GgufHeader& header) {
  RETURN_IF_ERROR(in.claim(count, kMinMetadataRecordBytes, 0));
  RETURN_IF_ERROR(check_count("metadata keys", count, kMaxMetadataKeys));
  for (uint64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(in.claim(1, kMinMetadataRecordBytes, 128));
    in.enter(fmt::format("metadata key {} of {}", i + 1, count));
    ASSIGN_OR_RETURN(std::string key, in.read_string(kMaxKeyBytes));
    in.enter(fmt::format("metadata '{}'", printable(key)));
    auto value = read_value(in);
    if (!value) return in.in_context(std::move(value).error());
    const auto [at, added] = header.metadata.try_emplace(std::move(key), std::move(*value));
    if (!added) {
      return make_error(ErrorCode::kInvalidData, "metadata '{}' is given twice",
                        printable(at->first));
    }
  }
  return {};
}

// Weights of a tensor; an error if any size is zero or the product does not fit an int64_t.
Result<uint64_t> count_weights(const GgufTensor& tensor) {
  uint64_t n = 1;
  for (const uint64_t dim : tensor.dims) {
    if (dim == 0) {
      return make_error(ErrorCode::kInvalidData, "a dimension is 0");
    }
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / n) {
      return make_error(ErrorCode::kInvalidData, "its dimensions multiply to 2^63 or more");
    }
    n *= dim;
  }
  return n;
}

Status set_bytes(GgufTensor& tensor) {
  ASSIGN_OR_RETURN(const uint64_t weights, count_weights(tensor));
  const auto type = traits_of(tensor.type_id);
  if (!type) return {};
  const auto block_weights = static_cast<uint64_t>(type->block_weights);
  const auto block_bytes = static_cast<uint64_t>(type->block_bytes);
  if (tensor.dims[0] % block_weights != 0) {
    return make_error(ErrorCode::kInvalidData,
                      "its rows have {} weights, not a multiple of {} as {} needs", tensor.dims[0],
                      block_weights, type->name);
  }
  const uint64_t blocks = weights / block_weights;
  if (blocks > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / block_bytes) {
    return make_error(ErrorCode::kInvalidData, "its size is 2^63 bytes or more");
  }
  tensor.bytes = blocks * block_bytes;
  return {};
}

// Until the whole table is read, file_offset is relative to the start of the data.
Result<GgufTensor> read_tensor(GgufReader& in) {
  GgufTensor tensor;
  ASSIGN_OR_RETURN(tensor.name, in.read_string(kMaxTensorNameBytes));
  in.enter(fmt::format("tensor '{}'", printable(tensor.name)));
  ASSIGN_OR_RETURN(const uint32_t n_dims, in.read<uint32_t>());
  if (n_dims == 0 || n_dims > kMaxDims) {
    return make_error(ErrorCode::kInvalidData, "it has {} dimensions; 1 to {} are allowed", n_dims,
                      kMaxDims);
  }
  tensor.dims.resize(n_dims);
  for (uint64_t& dim : tensor.dims) {
    ASSIGN_OR_RETURN(dim, in.read<uint64_t>());
  }
  ASSIGN_OR_RETURN(tensor.type_id, in.read<uint32_t>());
  ASSIGN_OR_RETURN(tensor.file_offset, in.read<uint64_t>());
  RETURN_IF_ERROR(set_bytes(tensor));
  return tensor;
}

Status check_names(const std::vector<GgufTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const GgufTensor& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return make_error(ErrorCode::kInvalidData, "tensor '{}' is given twice", printable(*twice));
}

// Turns relative offsets into offsets in the file and checks that each tensor lies inside it.
Status place_tensors(GgufHeader& header) {
  for (GgufTensor& t : header.tensors) {
    if (t.file_offset % header.alignment != 0) {
      return make_error(ErrorCode::kInvalidData,
                        "tensor '{}' has offset {}, which is not a multiple of the alignment {}",
                        printable(t.name), t.file_offset, header.alignment);
    }
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (t.file_offset > limit - header.data_offset ||
        t.bytes > limit - header.data_offset - t.file_offset) {
      return make_error(ErrorCode::kInvalidData,
                        "tensor '{}' has offset {}, which is beyond any file", printable(t.name),
                        t.file_offset);
    }
    t.file_offset += header.data_offset;
    if (t.file_offset + t.bytes > header.file_bytes) {
      return make_error(ErrorCode::kInvalidData,
                        "the file has {} bytes, but tensor '{}' needs it to have {}; it is "
                        "incomplete or damaged, download it again",
                        header.file_bytes, printable(t.name), t.file_offset + t.bytes);
    }
  }
  return {};
}

Status check_overlaps(const std::vector<GgufTensor>& tensors) {
  std::vector<const GgufTensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const GgufTensor& t : tensors) by_offset.push_back(&t);
  std::sort(by_offset.begin(), by_offset.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return std::pair(a->file_offset, a->bytes) < std::pair(b->file_offset, b->bytes);
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& before = *by_offset[i - 1];
    const GgufTensor& after = *by_offset[i];
    if (before.file_offset + before.bytes > after.file_offset) {
      return make_error(ErrorCode::kInvalidData,
                        "tensors '{}' and '{}' overlap at byte {} of the file",
                        printable(before.name), printable(after.name), after.file_offset);
    }
  }
  return {};
}

Status check_magic(const ByteSource& source) {
  char magic[4] = {};
  const size_t n = std::min<uint64_t>(source.size(), sizeof(magic));
  RETURN_IF_ERROR(source.read(0, std::as_writable_bytes(std::span(magic, n))));
  const std::string_view text(magic, n);
  if (text == "GGUF") return {};
  if (source.size() == 0) return make_error(ErrorCode::kInvalidData, "the file is empty");
  if (text == "FUGG") {
    return make_error(ErrorCode::kUnsupported,
                      "the file is a GGUF file in big-endian order; convert it to little-endian");
  }
  if (text == "lmgg" || text == "tjgg" || text == "fmgg" || text == "algg") {
    return make_error(ErrorCode::kUnsupported,
                      "the file has a format older than GGUF; convert it to GGUF");
  }
  if (text == "vers") {
    return make_error(ErrorCode::kInvalidData,
                      "not a GGUF file but text (a Git LFS pointer?); fetch the file itself");
  }
  return make_error(ErrorCode::kInvalidData, "not a GGUF file: it begins with \"{}\", not \"GGUF\"",
                    printable(text));
}

Result<uint32_t> read_version(GgufReader& in) {
  ASSIGN_OR_RETURN(const uint32_t version, in.read<uint32_t>());
  if (version == 2 || version == 3) return version;
  if (version == 0x02000000u || version == 0x03000000u) {
    return make_error(ErrorCode::kUnsupported,
                      "the file is a GGUF file in big-endian order; convert it to little-endian");
  }
  return make_error(version == 1 ? ErrorCode::kUnsupported : ErrorCode::kInvalidData,
                    "GGUF version {} is not supported; versions 2 and 3 are", version);
}

Result<uint64_t> read_alignment(const GgufHeader& header) {
  constexpr uint64_t kDefault = 32;
  ASSIGN_OR_RETURN(const std::optional<uint64_t> given, header.get_uint("general.alignment"));
  const uint64_t alignment = given.value_or(kDefault);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return make_error(ErrorCode::kInvalidData,
                      "general.alignment is {}; a power of two up to {} is needed", alignment,
                      kMaxAlignment);
  }
  return alignment;
}

}  // namespace

Result<GgufHeader> read_gguf_header(const ByteSource& source) {
  RETURN_IF_ERROR(check_magic(source));
  GgufReader in(source);
  RETURN_IF_ERROR(in.read<uint32_t>());  // the magic
  GgufHeader header;
  header.file_bytes = source.size();
  ASSIGN_OR_RETURN(header.version, read_version(in));
  in.enter("number of tensors");
  ASSIGN_OR_RETURN(const uint64_t n_tensors, in.read<uint64_t>());
  in.enter("number of metadata keys");
  ASSIGN_OR_RETURN(const uint64_t n_metadata, in.read<uint64_t>());
  RETURN_IF_ERROR(read_metadata(in, n_metadata, header));
  ASSIGN_OR_RETURN(header.alignment, read_alignment(header));

  in.enter("number of tensors");
  RETURN_IF_ERROR(in.claim(n_tensors, kMinTensorRecordBytes, sizeof(GgufTensor) + 64));
  RETURN_IF_ERROR(check_count("tensors", n_tensors, kMaxTensors));
  header.tensors.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    in.enter(fmt::format("tensor {} of {}", i + 1, n_tensors));
    auto tensor = read_tensor(in);
    if (!tensor) return in.in_context(std::move(tensor).error());
    header.tensors.push_back(std::move(*tensor));
  }
  header.data_offset = (in.position() + header.alignment - 1) / header.alignment * header.alignment;
  RETURN_IF_ERROR(check_names(header.tensors));
  RETURN_IF_ERROR(place_tensors(header));
  RETURN_IF_ERROR(check_overlaps(header.tensors));
  return header;
}

}  // namespace troika::model
