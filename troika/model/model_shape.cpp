#include "troika/model/model_shape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace troika::model {
namespace {

// From the models' published config.json files; `tiny` is made for tests.
const std::array<ModelShape, 11>& shapes() {
  static const std::array<ModelShape, 11> kShapes = {{
      {"tiny", 64, 2, 4, 2, 16, 128, 512, 2048, 1e4f, 1e-5f, true, false, 8},
      {"smollm2-135m", 576, 30, 9, 3, 64, 1536, 49152, 8192, 1e5f, 1e-5f, true, false, 8},
      {"smollm2-360m", 960, 32, 15, 5, 64, 2560, 49152, 8192, 1e5f, 1e-5f, true, false, 8},
      {"smollm2-1.7b", 2048, 24, 32, 32, 64, 8192, 49152, 8192, 1.3e5f, 1e-5f, true, false, 8},
      {"tinyllama-1.1b", 2048, 22, 32, 4, 64, 5632, 32000, 2048, 1e4f, 1e-5f, false, false, 8},
      {"llama-3.2-1b", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 5e5f, 1e-5f, true, true, 32},
      {"llama-3.2-3b", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 5e5f, 1e-5f, true, true, 32},
      {"llama-2-7b", 4096, 32, 32, 32, 128, 11008, 32000, 4096, 1e4f, 1e-5f, false, false, 8},
      {"mistral-7b", 4096, 32, 32, 8, 128, 14336, 32768, 32768, 1e6f, 1e-5f, false, false, 8},
      {"llama-3-8b", 4096, 32, 32, 8, 128, 14336, 128256, 8192, 5e5f, 1e-5f, false, false, 8},
      {"llama-3.1-8b", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 5e5f, 1e-5f, false, true, 8},
  }};
  return kShapes;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

tl::unexpected<Error> unknown_shape(std::string_view text) {
  return make_error(ErrorCode::kInvalidArgument,
                    "unknown shape '{}'; give one of {}, or six numbers: "
                    "hidden,layers,heads,kv_heads,ffn,vocab",
                    text, shape_names());
}

Result<std::array<int64_t, 6>> parse_numbers(std::string_view text) {
  std::array<int64_t, 6> numbers{};
  const char* at = text.data();
  const char* end = text.data() + text.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [after, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc()) return unknown_shape(text);
    at = after;
    const bool last = i + 1 == numbers.size();
    if (last ? at != end : (at == end || *at != ',')) return unknown_shape(text);
    ++at;
  }
  return numbers;
}

Status check_range(const char* what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} is {}; {} to {} is allowed", what, value, low,
                    high);
}

}  // namespace

std::string shape_names() {
  std::string names;
  for (const ModelShape& shape : shapes()) {
    if (!names.empty()) names += ", ";
    names += shape.name;
  }
  return names;
}

Result<ModelShape> parse_shape(std::string_view text) {
  for (const ModelShape& shape : shapes()) {
    if (same_name(shape.name, text)) return shape;
  }
  ASSIGN_OR_RETURN(const auto numbers, parse_numbers(text));
  ModelShape shape;
  shape.name = std::string(text);
  shape.hidden = numbers[0];
  shape.n_layers = numbers[1];
  shape.n_heads = numbers[2];
  shape.n_kv_heads = numbers[3];
  shape.head_dim = shape.n_heads > 0 ? shape.hidden / shape.n_heads : 0;
  shape.ffn = numbers[4];
  shape.n_vocab = numbers[5];
  shape.n_ctx = 8192;
  RETURN_IF_ERROR(check_shape(shape));
  return shape;
}

Status check_shape(const ModelShape& shape) {
  RETURN_IF_ERROR(check_range("the hidden size", shape.hidden, 2, 1 << 20));
  RETURN_IF_ERROR(check_range("the number of layers", shape.n_layers, 1, 4096));
  RETURN_IF_ERROR(check_range("the number of heads", shape.n_heads, 1, 65536));
  RETURN_IF_ERROR(check_range("the number of KV heads", shape.n_kv_heads, 1, shape.n_heads));
  RETURN_IF_ERROR(check_range("the width of the MLP", shape.ffn, 1, 1 << 22));
  RETURN_IF_ERROR(check_range("the context length", shape.n_ctx, 1, 1 << 30));
  if (shape.n_heads % shape.n_kv_heads != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{} heads are not a multiple of {} KV heads",
                      shape.n_heads, shape.n_kv_heads);
  }
  if (shape.n_heads * shape.head_dim != shape.hidden && shape.hidden % shape.n_heads != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the hidden size {} is not a multiple of {} heads", shape.hidden,
                      shape.n_heads);
  }
  RETURN_IF_ERROR(check_range("the size of a head", shape.head_dim, 2, 4096));
  if (shape.head_dim % 2 != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "heads of {} dimensions cannot be rotated in pairs; an even number is needed",
                      shape.head_dim);
  }
  return {};
}

}  // namespace troika::model
