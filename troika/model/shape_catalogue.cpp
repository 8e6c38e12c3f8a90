#include "troika/model/shape_catalogue.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "troika/base/json_text.h"

namespace troika::model {
namespace {

using nlohmann::json;

constexpr JsonBounds kBounds{3, 100, 40};
constexpr int64_t kShapeVersion = 1;
constexpr std::array kFields = {"version", "name",      "source",   "hidden", "layers",
                                "heads",   "kv_heads",  "head_dim", "ffn",    "vocabulary",
                                "context", "rope_base", "norm_eps", "tied",   "llama3_rope_factor"};

tl::unexpected<Error> wrong(const char* key, const json& value, const char* wanted) {
  return make_error(ErrorCode::kInvalidData, "shape: {} is {}, not {}", key, shown(value), wanted);
}

// Reads fields of one object; the first error stays.
class ShapeFields {
 public:
  explicit ShapeFields(const json& object) : object_(object) {}

  // Bounds are those of check_shape(), which names what is out of them.
  int64_t integer(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number_integer()) {
      fail(wrong(key, *value, "a whole number"));
      return 0;
    }
    constexpr int64_t kMost = int64_t{1} << 40;
    if (value->is_number_unsigned()) {
      return static_cast<int64_t>(std::min<uint64_t>(value->get<uint64_t>(), kMost));
    }
    return std::max(value->get<int64_t>(), -kMost);
  }

  float number(const char* key, double min, double max) {
    const json* value = find(key);
    if (value == nullptr) return 0;
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (std::isfinite(number) && number >= min && number <= max) return static_cast<float>(number);
    fail(make_error(ErrorCode::kInvalidData, "shape: {} is {}, not a number from {} to {}", key,
                    shown(*value), min, max));
    return 0;
  }

  bool boolean(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(wrong(key, *value, "true or false"));
    return value->is_boolean() && value->get<bool>();
  }

  std::string text(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return {};
    std::string text = value->is_string() ? value->get<std::string>() : "";
    const bool sound =
        !text.empty() && text.size() <= 200 &&
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= ' ' && c < 0x7f; });
    if (!sound) fail(wrong(key, *value, "a text of 1 to 200 printable characters"));
    return text;
  }

  Status status() const { return status_; }

 private:
  const json* find(const char* key) {
    const auto at = object_.find(key);
    if (at != object_.end()) return &*at;
    fail(make_error(ErrorCode::kInvalidData, "shape: {} is missing", key));
    return nullptr;
  }
  void fail(tl::unexpected<Error> error) {
    if (status_) status_ = std::move(error);
  }

  const json& object_;
  Status status_;
};

Status check_keys(const json& object) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(kFields.begin(), kFields.end(), key) != kFields.end()) continue;
    return make_error(ErrorCode::kInvalidData, "shape: unknown field {}", shown(json(key)));
  }
  return {};
}

}  // namespace

Result<ModelShape> shape_from_json(std::string_view text) {
  if (text.size() > kMaxShapeBytes) {
    return make_error(ErrorCode::kInvalidData, "shape: {} bytes, more than {}", text.size(),
                      kMaxShapeBytes);
  }
  RETURN_IF_ERROR(check_json_size(text, "shape", kBounds));
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    return make_error(ErrorCode::kInvalidData, "shape: not a JSON object");
  }
  RETURN_IF_ERROR(check_keys(object));
  ShapeFields fields(object);
  const int64_t version = fields.integer("version");
  RETURN_IF_ERROR(fields.status());
  if (version != kShapeVersion) {
    return make_error(ErrorCode::kUnsupported, "shape: version {}, but this build reads version {}",
                      version, kShapeVersion);
  }
  ModelShape shape;
  shape.name = fields.text("name");
  fields.text("source");
  shape.hidden = fields.integer("hidden");
  shape.n_layers = fields.integer("layers");
  shape.n_heads = fields.integer("heads");
  shape.n_kv_heads = fields.integer("kv_heads");
  shape.head_dim = fields.integer("head_dim");
  shape.ffn = fields.integer("ffn");
  shape.n_vocab = fields.integer("vocabulary");
  shape.n_ctx = fields.integer("context");
  shape.rope_base = fields.number("rope_base", 1, 1e9);
  shape.norm_eps = fields.number("norm_eps", 1e-12, 0.1);
  shape.tied = fields.boolean("tied");
  shape.llama3_scaling = object.contains("llama3_rope_factor");
  if (shape.llama3_scaling) shape.llama3_factor = fields.number("llama3_rope_factor", 1, 1e4);
  RETURN_IF_ERROR(fields.status());
  if (auto checked = check_shape(shape); !checked) {
    return make_error(ErrorCode::kInvalidData, "shape: {}", checked.error().message);
  }
  return shape;
}

const std::vector<ModelShape>& known_shapes() {
  static const std::vector<ModelShape> kShapes = [] {
    std::vector<ModelShape> shapes;
    for (const EmbeddedJson& entry : embedded_shapes()) {
      auto shape = shape_from_json(*entry.json);
      assert(shape.has_value());  // shape_catalogue_test reads every file
      if (shape) shapes.push_back(std::move(*shape));
    }
    return shapes;
  }();
  return kShapes;
}

}  // namespace troika::model
