#include "troika/profile/record/json_visitors.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "troika/base/json_text.h"

namespace troika::profile {
namespace {

using nlohmann::json;

constexpr size_t kMaxTextBytes = JsonSchema::kMostText;

bool whole(const json& value, int64_t min, int64_t max) {
  // Unsigned numbers above the signed range must not wrap into it.
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  return fits && value.get<int64_t>() >= min && value.get<int64_t>() <= max;
}

}  // namespace

JsonReader::JsonReader(const json& value, std::string path)
    : object_(&value), path_(std::move(path)) {
  if (!value.is_object()) {
    status_ = make_error(ErrorCode::kInvalidData, "profile: {} is {}, not an object", path_,
                         shown(value));
  }
}

const json* JsonReader::field(const char* key) {
  if (!status_) return nullptr;
  asked_.insert(key);
  const auto found = object_->find(key);
  if (found != object_->end()) return &*found;
  status_ = make_error(ErrorCode::kInvalidData, "profile: {} is missing", path(key));
  return nullptr;
}

void JsonReader::refuse(const char* key, const json& value, const std::string& wanted) {
  status_ = make_error(ErrorCode::kInvalidData, "profile: {} is {}, not {}", path(key),
                       shown(value), wanted);
}

void JsonReader::integer(const char* key, int64_t& value, int64_t min, int64_t max) {
  const json* found = field(key);
  if (found == nullptr) return;
  if (!whole(*found, min, max)) {
    refuse(key, *found, fmt::format("a whole number from {} to {}", min, max));
    return;
  }
  value = found->get<int64_t>();
}

void JsonReader::number(const char* key, double& value, double min, double max) {
  const json* found = field(key);
  if (found == nullptr) return;
  const double read = found->is_number() ? found->get<double>() : NAN;
  if (!std::isfinite(read) || read < min || read > max) {
    refuse(key, *found, fmt::format("a number from {} to {}", min, max));
    return;
  }
  value = read;
}

void JsonReader::boolean(const char* key, bool& value) {
  const json* found = field(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) {
    refuse(key, *found, "true or false");
    return;
  }
  value = found->get<bool>();
}

void JsonReader::text(const char* key, std::string& value) {
  const json* found = field(key);
  if (found == nullptr) return;
  if (found->is_string()) {
    const auto& read = found->get_ref<const std::string&>();
    if (read.size() <= kMaxTextBytes && std::all_of(read.begin(), read.end(), [](unsigned char c) {
          return c >= ' ' && c < 0x7f;
        })) {
      value = read;
      return;
    }
  }
  refuse(key, *found,
         fmt::format("a text of at most {} printable ASCII characters", kMaxTextBytes));
}

void JsonReader::choice(const char* key, std::string& value,
                        const std::vector<std::string>& allowed) {
  const json* found = field(key);
  if (found == nullptr) return;
  if (found->is_string()) {
    const auto& read = found->get_ref<const std::string&>();
    if (std::find(allowed.begin(), allowed.end(), read) != allowed.end()) {
      value = read;
      return;
    }
  }
  refuse(key, *found, fmt::format("one of {}", fmt::join(allowed, ", ")));
}

const json* JsonReader::array(const char* key, size_t most) {
  const json* found = field(key);
  if (found == nullptr) return nullptr;
  if (found->is_array() && found->size() <= most) return found;
  refuse(key, *found, fmt::format("an array of at most {} entries", most));
  return nullptr;
}

void JsonReader::integers(const char* key, std::vector<int64_t>& values, size_t most, int64_t min,
                          int64_t max) {
  const json* found = array(key, most);
  if (found == nullptr) return;
  values.clear();
  for (const json& value : *found) {
    if (!whole(value, values.empty() ? min : values.back() + 1, max)) {
      refuse(key, value, fmt::format("a list of ascending whole numbers from {} to {}", min, max));
      return;
    }
    values.push_back(value.get<int64_t>());
  }
}

Status JsonReader::finish() {
  if (!status_) return status_;
  for (const auto& [key, value] : object_->items()) {
    if (asked_.count(key) > 0) continue;
    return make_error(ErrorCode::kInvalidData, "profile: {} has an unknown field {}", path_,
                      shown(json(key)));
  }
  return {};
}

}  // namespace troika::profile
