#include "troika/plan/json_fields.h"

#include <algorithm>
#include <cmath>

#include "troika/base/json_text.h"

namespace troika::plan {
namespace {

// Bounds on what is read: far above any real plan, far below what would hurt.
constexpr size_t kMaxNameBytes = 256;

}  // namespace

using nlohmann::json;

Result<const json*> field(const json& object, const std::string& path, const char* key) {
  if (!object.is_object()) {
    return make_error(ErrorCode::kInvalidData, "plan: {} is not an object", path);
  }
  const auto found = object.find(key);
  if (found == object.end()) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.{} is missing", path, key);
  }
  return &*found;
}

Result<std::string> string_field(const json& object, const std::string& path, const char* key) {
  ASSIGN_OR_RETURN(const json* value, field(object, path, key));
  if (!value->is_string()) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.{} is not a string", path, key);
  }
  return value->get<std::string>();
}

Result<int64_t> int_field(const json& object, const std::string& path, const char* key,
                          int64_t least, int64_t most) {
  ASSIGN_OR_RETURN(const json* value, field(object, path, key));
  // Unsigned numbers above the signed range must not wrap into it.
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
  if (!fits || value->get<int64_t>() < least || value->get<int64_t>() > most) {
    return make_error(ErrorCode::kInvalidData,
                      "plan: {}.{} is {}, not a whole number from {} to {}", path, key,
                      shown(*value), least, most);
  }
  return value->get<int64_t>();
}

Result<const json*> array_field(const json& object, const std::string& path, const char* key) {
  ASSIGN_OR_RETURN(const json* value, field(object, path, key));
  if (!value->is_array()) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.{} is not an array", path, key);
  }
  return value;
}

Status no_other_fields(const json& object, const std::string& path,
                       std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) {
    return make_error(ErrorCode::kInvalidData, "plan: {} is not an object", path);
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    return make_error(ErrorCode::kInvalidData, "plan: {} has an unknown field {}", path,
                      shown(key));
  }
  return {};
}

Result<std::string> name_from(const json& value, const std::string& path) {
  const auto printable = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  if (value.is_string()) {
    const auto& name = value.get_ref<const std::string&>();
    const bool sound = !name.empty() && name.size() <= kMaxNameBytes &&
                       std::all_of(name.begin(), name.end(), printable);
    if (sound) return name;
  }
  return make_error(ErrorCode::kInvalidData, "plan: {} is {}, not a name", path, shown(value));
}

Result<double> number_field(const json& object, const std::string& path, const char* key) {
  ASSIGN_OR_RETURN(const json* value, field(object, path, key));
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return make_error(ErrorCode::kInvalidData, "plan: {}.{} is {}, not a number", path, key,
                      shown(*value));
  }
  return value->get<double>();
}

}  // namespace troika::plan
