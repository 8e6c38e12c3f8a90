// Dates as text for strftime_now(), the same on every machine: English names whatever the locale.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::model::jinja {

// kUnsupported for a directive that is not known; kInvalidData if `time` is no date.
Result<std::string> format_time(const std::tm& time, std::string_view format);

}  // namespace troika::model::jinja
