// The functions that a template finds defined: range(), namespace(), dict(), raise_exception() and
// strftime_now().
#pragma once

#include <ctime>
#include <optional>

#include "troika/base/result.h"
#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// kInvalidArgument with the template's words only from raise_exception(). kStrftimeNow needs `now`.
Result<Value> call_function(Heap& heap, Function function, const Arguments& arguments,
                            const std::optional<std::tm>& now);

}  // namespace troika::model::jinja
