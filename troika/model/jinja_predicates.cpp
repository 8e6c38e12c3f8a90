// The tests of the template language: `value is NAME`.
#include <utility>

#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

using Given = std::span<const Value>;

Status need(Given arguments, size_t count, std::string_view name) {
  if (arguments.size() != count) {
    return make_error(ErrorCode::kInvalidData, "the test '{}' takes {} arguments, not {}", name,
                      count, arguments.size());
  }
  return {};
}

template <bool (*Fn)(const Value&)>
Result<bool> simple(Heap&, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 0, "of a kind"));
  return Fn(value);
}

bool is_defined(const Value& v) { return !v.is(ValueKind::kUndefined); }
bool is_undefined(const Value& v) { return v.is(ValueKind::kUndefined); }
bool is_none(const Value& v) { return v.is(ValueKind::kNone); }
bool is_string(const Value& v) { return v.is(ValueKind::kString); }
bool is_a_number(const Value& v) { return v.is_number(); }
bool is_integer(const Value& v) { return v.is(ValueKind::kInteger); }
bool is_float(const Value& v) { return v.is(ValueKind::kFloat); }
bool is_boolean(const Value& v) { return v.is(ValueKind::kBool); }
bool is_true_value(const Value& v) { return v.is(ValueKind::kBool) && v.boolean; }
bool is_false_value(const Value& v) { return v.is(ValueKind::kBool) && !v.boolean; }
bool is_mapping(const Value& v) { return v.is(ValueKind::kDict); }
bool is_iterable(const Value& v) {
  return v.is(ValueKind::kString) || v.is(ValueKind::kSequence) || v.is(ValueKind::kDict) ||
         v.is(ValueKind::kUndefined) || v.is(ValueKind::kLoop);
}
// What has a length and takes subscripts.
bool is_sequence_like(const Value& v) {
  if (v.is(ValueKind::kSequence)) {
    return v.sequence->kind == SequenceKind::kList || v.sequence->kind == SequenceKind::kTuple ||
           v.sequence->kind == SequenceKind::kRange;
  }
  return v.is(ValueKind::kString) || v.is(ValueKind::kDict) || v.is(ValueKind::kUndefined);
}
bool is_callable(const Value& v) {
  return v.is(ValueKind::kMacro) || v.is(ValueKind::kFunction) || v.is(ValueKind::kMethod) ||
         v.is(ValueKind::kUndefined) || v.is(ValueKind::kLoop);
}

template <bool (*Accepts)(int32_t), bool (*Rejects)(int32_t)>
Result<bool> all_cased(Heap& heap, const Value& value, Given) {
  if (!value.is(ValueKind::kString)) return false;
  RETURN_IF_ERROR(heap.spend_scan(value.text->bytes.size()));
  bool found = false;
  for (std::string_view rest = value.text->bytes; !rest.empty();) {
    const Character character = first_character(rest);
    if (Rejects(character.code)) return false;
    found = found || Accepts(character.code);
    rest.remove_prefix(character.size);
  }
  return found;
}

Result<int64_t> integral(const Value& value, std::string_view test) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (!value.is_integral()) {
    return make_error(ErrorCode::kInvalidData, "the test '{}' needs an int, not a {}", test,
                      kind_name(value));
  }
  return value.as_integer();
}

Result<bool> is_odd(Heap&, const Value& value, Given) {
  ASSIGN_OR_RETURN(const int64_t number, integral(value, "odd"));
  return number % 2 != 0;
}

Result<bool> is_even(Heap&, const Value& value, Given) {
  ASSIGN_OR_RETURN(const int64_t number, integral(value, "even"));
  return number % 2 == 0;
}

Result<bool> is_divisible(Heap&, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 1, "divisibleby"));
  ASSIGN_OR_RETURN(const int64_t number, integral(value, "divisibleby"));
  ASSIGN_OR_RETURN(const int64_t divisor, integral(arguments[0], "divisibleby"));
  if (divisor == 0) return make_error(ErrorCode::kInvalidData, "division by zero");
  return divisor == -1 || number % divisor == 0;
}

Result<bool> is_equal(Heap& heap, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 1, "eq"));
  return equal(heap, value, arguments[0]);
}

Result<bool> is_not_equal(Heap& heap, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 1, "ne"));
  ASSIGN_OR_RETURN(const bool same, equal(heap, value, arguments[0]));
  return !same;
}

Result<int> order(Heap& heap, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 1, "of order"));
  return compare(heap, value, arguments[0]);
}

Result<bool> is_less(Heap& heap, const Value& value, Given arguments) {
  ASSIGN_OR_RETURN(const int sign, order(heap, value, arguments));
  return sign < 0;
}

Result<bool> is_less_equal(Heap& heap, const Value& value, Given arguments) {
  ASSIGN_OR_RETURN(const int sign, order(heap, value, arguments));
  return sign <= 0;
}

Result<bool> is_greater(Heap& heap, const Value& value, Given arguments) {
  ASSIGN_OR_RETURN(const int sign, order(heap, value, arguments));
  return sign > 0;
}

Result<bool> is_greater_equal(Heap& heap, const Value& value, Given arguments) {
  ASSIGN_OR_RETURN(const int sign, order(heap, value, arguments));
  return sign >= 0;
}

Result<bool> is_in(Heap& heap, const Value& value, Given arguments) {
  RETURN_IF_ERROR(need(arguments, 1, "in"));
  return contains(heap, arguments[0], value);
}

Result<bool> is_filter(Heap& heap, const Value& value, Given) {
  ASSIGN_OR_RETURN(const Text* name, text_argument("filter", value));
  RETURN_IF_ERROR(heap.spend(1));
  return find_filter(name->bytes) != nullptr;
}

Result<bool> is_test(Heap& heap, const Value& value, Given) {
  ASSIGN_OR_RETURN(const Text* name, text_argument("test", value));
  RETURN_IF_ERROR(heap.spend(1));
  return find_test(name->bytes) != nullptr;
}

bool is_not_lower_only(int32_t code) { return is_cased(code) && !is_lower(code); }
bool is_not_upper_only(int32_t code) { return is_cased(code) && !is_upper(code); }

constexpr std::pair<std::string_view, Test> kTests[] = {
    {"defined", simple<is_defined>},
    {"undefined", simple<is_undefined>},
    {"none", simple<is_none>},
    {"string", simple<is_string>},
    {"number", simple<is_a_number>},
    {"integer", simple<is_integer>},
    {"float", simple<is_float>},
    {"boolean", simple<is_boolean>},
    {"true", simple<is_true_value>},
    {"false", simple<is_false_value>},
    {"mapping", simple<is_mapping>},
    {"iterable", simple<is_iterable>},
    {"sequence", simple<is_sequence_like>},
    {"callable", simple<is_callable>},
    {"lower", all_cased<is_lower, is_not_lower_only>},
    {"upper", all_cased<is_upper, is_not_upper_only>},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"==", is_equal},
    {"ne", is_not_equal},
    {"!=", is_not_equal},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<", is_less},
    {"le", is_less_equal},
    {"<=", is_less_equal},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">", is_greater},
    {"ge", is_greater_equal},
    {">=", is_greater_equal},
    {"in", is_in},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const auto& [known, test] : kTests) {
    if (known == name) return test;
  }
  return nullptr;
}

}  // namespace troika::model::jinja
