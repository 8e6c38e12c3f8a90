// A record's fields are listed once, and written, read or described by a visitor: JsonWriter,
// JsonReader or JsonSchema.
//
// A field's name ends in its unit. Reading is strict: every field there once, of its type, in its
// range, and no other; the first error names the field's path.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "troika/base/result.h"

namespace troika::profile {

class JsonWriter {
 public:
  using Json = nlohmann::ordered_json;

  void integer(const char* key, int64_t value, int64_t, int64_t) { object_[key] = value; }
  void number(const char* key, double value, double, double) { object_[key] = value; }
  void boolean(const char* key, bool value) { object_[key] = value; }
  void text(const char* key, const std::string& value) { object_[key] = value; }
  void choice(const char* key, const std::string& value, const std::vector<std::string>&) {
    object_[key] = value;
  }
  template <class T, class Visit>
  void object(const char* key, T& value, const Visit& visit) {
    JsonWriter inside;
    visit(inside, value);
    object_[key] = std::move(inside.object_);
  }
  template <class T, class Visit>
  void list(const char* key, std::vector<T>& values, size_t, const Visit& visit) {
    Json array = Json::array();
    for (T& value : values) {
      JsonWriter inside;
      visit(inside, value);
      array.push_back(std::move(inside.object_));
    }
    object_[key] = std::move(array);
  }
  void integers(const char* key, const std::vector<int64_t>& values, size_t, int64_t, int64_t) {
    object_[key] = values;
  }

  const Json& json() const { return object_; }

 private:
  Json object_ = Json::object();
};

// Describes the fields, of records that are empty.
class JsonSchema {
 public:
  using Json = nlohmann::ordered_json;

  void integer(const char* key, int64_t, int64_t min, int64_t max) {
    add(key, {{"type", "integer"}, {"minimum", min}, {"maximum", max}});
  }
  void number(const char* key, double, double min, double max) {
    add(key, {{"type", "number"}, {"minimum", min}, {"maximum", max}});
  }
  void boolean(const char* key, bool) { add(key, {{"type", "boolean"}}); }
  void text(const char* key, const std::string&) {
    add(key, {{"type", "string"}, {"maxLength", kMostText}, {"pattern", "^[ -~]*$"}});
  }
  void choice(const char* key, const std::string&, const std::vector<std::string>& allowed) {
    add(key, {{"enum", allowed}});
  }
  template <class T, class Visit>
  void object(const char* key, T&, const Visit& visit) {
    add(key, of<T>(visit));
  }
  template <class T, class Visit>
  void list(const char* key, std::vector<T>&, size_t most, const Visit& visit) {
    add(key, {{"type", "array"}, {"maxItems", most}, {"items", of<T>(visit)}});
  }
  void integers(const char* key, const std::vector<int64_t>&, size_t most, int64_t min,
                int64_t max) {
    add(key, {{"type", "array"},
              {"maxItems", most},
              {"items", {{"type", "integer"}, {"minimum", min}, {"maximum", max}}}});
  }

  Json json() const {
    Json object = Json::object();
    object["type"] = "object";
    object["additionalProperties"] = false;
    object["required"] = required_;
    object["properties"] = properties_;
    return object;
  }

  static constexpr size_t kMostText = 400;

 private:
  template <class T, class Visit>
  static Json of(const Visit& visit) {
    JsonSchema inside;
    T empty{};
    visit(inside, empty);
    return inside.json();
  }
  void add(const char* key, Json value) {
    required_.push_back(key);
    properties_[key] = std::move(value);
  }

  Json required_ = Json::array();
  Json properties_ = Json::object();
};

class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string path);

  void integer(const char* key, int64_t& value, int64_t min, int64_t max);
  void number(const char* key, double& value, double min, double max);
  void boolean(const char* key, bool& value);
  // Printable ASCII of at most 400 characters.
  void text(const char* key, std::string& value);
  void choice(const char* key, std::string& value, const std::vector<std::string>& allowed);
  template <class T, class Visit>
  void object(const char* key, T& value, const Visit& visit) {
    const nlohmann::json* found = field(key);
    if (found == nullptr) return;
    JsonReader inside(*found, path(key));
    if (inside.status_) visit(inside, value);
    take(inside.finish());
  }
  template <class T, class Visit>
  void list(const char* key, std::vector<T>& values, size_t most, const Visit& visit) {
    const nlohmann::json* found = array(key, most);
    if (found == nullptr) return;
    values.clear();
    for (size_t i = 0; i < found->size() && status_; ++i) {
      JsonReader inside((*found)[i], path(key) + "[" + std::to_string(i) + "]");
      values.emplace_back();
      if (inside.status_) visit(inside, values.back());
      take(inside.finish());
    }
  }
  // Ascending.
  void integers(const char* key, std::vector<int64_t>& values, size_t most, int64_t min,
                int64_t max);

  // The first error; kInvalidData for a field that was not asked for.
  Status finish();

 private:
  const nlohmann::json* field(const char* key);
  const nlohmann::json* array(const char* key, size_t most);
  std::string path(const char* key) const { return path_ + "." + key; }
  void refuse(const char* key, const nlohmann::json& value, const std::string& wanted);
  void take(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  const nlohmann::json* object_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
  Status status_;
};

}  // namespace troika::profile
