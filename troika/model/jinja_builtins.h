// The filters, tests, and methods of values that chat templates use.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;

  bool empty() const { return positional.empty() && keywords.empty(); }
};

// Arguments in the order of a function's parameters; those not given are unset.
using Bound = std::array<std::optional<Value>, 5>;
Result<Bound> bind(std::string_view function, const Arguments& arguments,
                   std::initializer_list<std::string_view> parameters, size_t n_required = 0);

using Filter = Result<Value> (*)(Heap& heap, const Value& value, const Arguments& arguments);
using Test = Result<bool> (*)(Heap& heap, const Value& value, std::span<const Value> arguments);

// Null if there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

// Whether values of this kind have this method (in the language itself, supported here or not).
bool has_method(const Value& self, std::string_view name);
Result<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments);

// `value.name`: what attribute access finds, or an undefined value. `name` outlives the heap.
Result<Value> attribute(Heap& heap, const Value& value, const std::string& name);
// `value[key]`, likewise.
Result<Value> item(Heap& heap, const Value& value, const Value& key);

// The given argument as an integer.
Result<int64_t> integer_argument(std::string_view function, const Value& value);
Result<const Text*> text_argument(std::string_view function, const Value& value);

}  // namespace troika::model::jinja
