#include "troika/soc/fields.h"

#include <algorithm>
#include <cmath>

namespace troika::soc {
namespace {

using nlohmann::json;

constexpr JsonBounds kBounds{12, 20'000, 60};
constexpr size_t kMaxTextBytes = 400;
constexpr size_t kMaxNameBytes = 64;

bool printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= ' ' && c < 0x7f; });
}

Result<FigureKind> kind_from(const std::string& name) {
  for (const FigureKind kind :
       {FigureKind::kMeasured, FigureKind::kPublished, FigureKind::kVendor, FigureKind::kFitted}) {
    if (to_string(kind) == name) return kind;
  }
  return make_error(ErrorCode::kInvalidData, "unknown kind");
}

Status check_value(const json& value, const std::string& path, const FigureRange& range) {
  const double number = value.is_number() ? value.get<double>() : NAN;
  const bool sound = std::isfinite(number) && number >= range.min && number <= range.max &&
                     (!range.whole || number == std::floor(number));
  if (sound) return {};
  return make_error(ErrorCode::kInvalidData, "description: {} is {}, not a {} from {} to {}", path,
                    shown(value), range.whole ? "whole number" : "number", range.min, range.max);
}

}  // namespace

std::string_view to_string(FigureKind kind) {
  switch (kind) {
    case FigureKind::kMeasured:
      return "measured";
    case FigureKind::kPublished:
      return "published";
    case FigureKind::kVendor:
      return "vendor";
    case FigureKind::kFitted:
      return "fitted";
  }
  return "";
}

Result<json> parse_strictly(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return make_error(ErrorCode::kInvalidData, "description: {} bytes, more than {}", text.size(),
                      max_bytes);
  }
  RETURN_IF_ERROR(check_json_size(text, "description", kBounds));
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) {
    return make_error(ErrorCode::kInvalidData, "description: not valid JSON");
  }
  if (const auto twice = repeated_json_key(text)) {
    return make_error(ErrorCode::kInvalidData, "description: key {} stands twice in one object",
                      shown(*twice));
  }
  return root;
}

Result<std::string> name_from(const json& value, const std::string& path) {
  const auto word = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!text.empty() && text.size() <= kMaxNameBytes &&
        std::all_of(text.begin(), text.end(), word)) {
      return text;
    }
  }
  return make_error(ErrorCode::kInvalidData, "description: {} is {}, not a name", path,
                    shown(value));
}

Result<Fields> Fields::of(const json& value, std::string path) {
  if (!value.is_object()) {
    return make_error(ErrorCode::kInvalidData, "description: {} is not an object", path);
  }
  return Fields(value, std::move(path));
}

Result<const json*> Fields::any(const char* key) {
  asked_.insert(key);
  const auto found = object_->find(key);
  if (found == object_->end()) {
    return make_error(ErrorCode::kInvalidData, "description: {} is missing", path(key));
  }
  return &*found;
}

Result<Fields> Fields::object(const char* key) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  return of(*value, path(key));
}

Result<const json*> Fields::array(const char* key, size_t most) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  if (!value->is_array() || value->empty() || value->size() > most) {
    return make_error(ErrorCode::kInvalidData, "description: {} is not an array of 1 to {} entries",
                      path(key), most);
  }
  return value;
}

Result<std::string> Fields::text(const char* key) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (!text.empty() && text.size() <= kMaxTextBytes && printable(text)) return text;
  }
  return make_error(ErrorCode::kInvalidData,
                    "description: {} is {}, not a text of 1 to {} printable ASCII characters",
                    path(key), shown(*value), kMaxTextBytes);
}

Result<std::string> Fields::name(const char* key) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  return name_from(*value, path(key));
}

Result<std::string> Fields::choice(const char* key, const std::vector<std::string>& allowed) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  }
  return make_error(ErrorCode::kInvalidData, "description: {} is {}, not one of {}", path(key),
                    shown(*value), fmt::join(allowed, ", "));
}

Result<bool> Fields::boolean(const char* key) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  if (value->is_boolean()) return value->get<bool>();
  return make_error(ErrorCode::kInvalidData, "description: {} is {}, not true or false", path(key),
                    shown(*value));
}

Result<int64_t> Fields::integer(const char* key, int64_t min, int64_t max) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  // Unsigned numbers above the signed range must not wrap into it.
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
  if (!fits || value->get<int64_t>() < min || value->get<int64_t>() > max) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {} is {}, not a whole number from {} to {}", path(key),
                      shown(*value), min, max);
  }
  return value->get<int64_t>();
}

Result<double> Fields::number(const char* key, double min, double max) {
  ASSIGN_OR_RETURN(const json* value, any(key));
  FigureRange range;
  range.min = min;
  range.max = max;
  RETURN_IF_ERROR(check_value(*value, path(key), range));
  return value->get<double>();
}

Status Fields::origin(const FigureRange& range, FigureKind& kind, std::string& source) {
  ASSIGN_OR_RETURN(const json* unit, any("unit"));
  if (!unit->is_string() || unit->get_ref<const std::string&>() != range.unit) {
    return make_error(ErrorCode::kInvalidData, "description: {} is {}, not \"{}\"", path("unit"),
                      shown(*unit), range.unit);
  }
  ASSIGN_OR_RETURN(const std::string name,
                   choice("kind", {"measured", "published", "vendor", "fitted"}));
  ASSIGN_OR_RETURN(kind, kind_from(name));
  ASSIGN_OR_RETURN(source, text("source"));
  return finish();
}

Result<Figure> Fields::figure(const char* key, const FigureRange& range) {
  ASSIGN_OR_RETURN(Fields fields, object(key));
  ASSIGN_OR_RETURN(const json* value, fields.any("value"));
  RETURN_IF_ERROR(check_value(*value, fields.path("value"), range));
  Figure figure;
  figure.value = value->get<double>();
  RETURN_IF_ERROR(fields.origin(range, figure.kind, figure.source));
  return figure;
}

Result<std::optional<Figure>> Fields::optional_figure(const char* key, const FigureRange& range) {
  if (!has(key)) return std::optional<Figure>();
  ASSIGN_OR_RETURN(Figure value, figure(key, range));
  return std::optional<Figure>(std::move(value));
}

Result<std::vector<double>> Fields::numbers(const char* key, const FigureRange& range, size_t most,
                                            bool ascending) {
  ASSIGN_OR_RETURN(const json* values, array(key, most));
  std::vector<double> list;
  for (size_t i = 0; i < values->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path(key), i);
    RETURN_IF_ERROR(check_value((*values)[i], at, range));
    const double value = (*values)[i].get<double>();
    if (ascending && !list.empty() && value <= list.back()) {
      return make_error(ErrorCode::kInvalidData, "description: {} is {}, not above the one before",
                        at, value);
    }
    list.push_back(value);
  }
  return list;
}

Result<FigureList> Fields::figures(const char* key, const FigureRange& range, size_t most) {
  ASSIGN_OR_RETURN(Fields fields, object(key));
  FigureList list;
  ASSIGN_OR_RETURN(list.values, fields.numbers("values", range, most, true));
  RETURN_IF_ERROR(fields.origin(range, list.kind, list.source));
  return list;
}

Result<std::optional<FigureCurve>> Fields::optional_curve(const char* key,
                                                          const FigureRange& tokens,
                                                          const FigureRange& range, size_t most) {
  if (!has(key)) return std::optional<FigureCurve>();
  ASSIGN_OR_RETURN(Fields fields, object(key));
  FigureCurve curve;
  ASSIGN_OR_RETURN(curve.tokens, fields.numbers("tokens", tokens, most, true));
  ASSIGN_OR_RETURN(curve.values, fields.numbers("values", range, most, false));
  if (curve.values.size() != curve.tokens.size()) {
    return make_error(ErrorCode::kInvalidData, "description: {} has {} tokens, but {} values",
                      path(key), curve.tokens.size(), curve.values.size());
  }
  RETURN_IF_ERROR(fields.origin(range, curve.kind, curve.source));
  return std::optional<FigureCurve>(std::move(curve));
}

Status Fields::finish() const {
  for (const auto& [key, value] : object_->items()) {
    if (asked_.count(key) > 0) continue;
    return make_error(ErrorCode::kInvalidData, "description: {} has an unknown field {}", path_,
                      shown(json(key)));
  }
  return {};
}

}  // namespace troika::soc
