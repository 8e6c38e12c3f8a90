#include "troika/model/model_shape.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "troika/model/shape_catalogue.h"

namespace troika::model {
namespace {

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
  for (const ModelShape& shape : known_shapes()) {
    if (!names.empty()) names += ", ";
    names += shape.name;
  }
  return names;
}

Result<ModelShape> parse_shape(std::string_view text) {
  for (const ModelShape& shape : known_shapes()) {
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
  RETURN_IF_ERROR(check_range("the vocabulary", shape.n_vocab, 1, 1 << 24));
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
