// Fields of a plan's JSON, each read with a check that names its path.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::plan {

// `path` is the object's, for messages: "plan.buckets[0]".
Result<const nlohmann::json*> field(const nlohmann::json& object, const std::string& path,
                                    const char* key);
Result<std::string> string_field(const nlohmann::json& object, const std::string& path,
                                 const char* key);
Result<int64_t> int_field(const nlohmann::json& object, const std::string& path, const char* key,
                          int64_t least, int64_t most);
Result<double> number_field(const nlohmann::json& object, const std::string& path, const char* key);
Result<const nlohmann::json*> array_field(const nlohmann::json& object, const std::string& path,
                                          const char* key);
// A mistyped field would be lost silently: kInvalidData with the path of the first field that is
// not one of `keys`.
Status no_other_fields(const nlohmann::json& object, const std::string& path,
                       std::initializer_list<std::string_view> keys);
// Names end up in messages and tables: printable ASCII.
Result<std::string> name_from(const nlohmann::json& value, const std::string& path);

}  // namespace troika::plan
