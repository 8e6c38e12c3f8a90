// The filters of the template language: `value | NAME`.
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_print.h"
#include "troika/model/jinja_text.h"
#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

template <Case kHow>
Result<Value> case_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("case filter", arguments, {}));
  ASSIGN_OR_RETURN(const Text* text, to_text(heap, value));
  return change_case(heap, *text, kHow);
}

Result<Value> trim(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("trim", arguments, {"chars"}));
  ASSIGN_OR_RETURN(const Text* text, to_text(heap, value));
  const Text* characters = nullptr;
  if (bound[0] && !bound[0]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(characters, text_argument("trim", *bound[0]));
  }
  return strip(heap, *text, characters, Ends{});
}

Result<Value> length_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("length", arguments, {}));
  ASSIGN_OR_RETURN(const size_t size, length(heap, value));
  return integer_value(static_cast<int64_t>(size));
}

Result<Value> first(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("first", arguments, {}));
  if (value.is(ValueKind::kString)) {
    ASSIGN_OR_RETURN(const auto character, character_at(heap, *value.text, 0));
    return character ? *character : undefined_value();
  }
  if (value.is_sequence(SequenceKind::kGenerator)) {
    Sequence& generator = *value.sequence;
    if (generator.taken >= generator.items.size()) return undefined_value();
    return generator.items[generator.taken++];
  }
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  return items.empty() ? undefined_value() : items.front();
}

Result<Value> last(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("last", arguments, {}));
  if (value.is(ValueKind::kString)) {
    ASSIGN_OR_RETURN(const auto character, character_at(heap, *value.text, -1));
    return character ? *character : undefined_value();
  }
  if (value.is_sequence(SequenceKind::kGenerator)) {
    return make_error(ErrorCode::kInvalidData, "last: a generator cannot be reversed");
  }
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  return items.empty() ? undefined_value() : items.back();
}

// Follows "a.b.0" from an item.
Result<Value> follow(Heap& heap, Value value, const Value& path) {
  if (!path.is(ValueKind::kString)) return item(heap, value, path);
  std::string_view rest = path.text->bytes;
  for (bool more = true; more;) {
    RETURN_IF_ERROR(heap.spend(1));
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    more = dot != std::string_view::npos;
    if (more) rest.remove_prefix(dot + 1);
    int64_t index = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index =
        !part.empty() && part[0] != '-' && code == std::errc() && end == part.data() + part.size();
    Value key = integer_value(index);
    if (!is_index) {
      ASSIGN_OR_RETURN(key, heap.view(part, true));
    }
    ASSIGN_OR_RETURN(value, item(heap, value, key));
  }
  return value;
}

Result<Value> join(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("join", arguments, {"d", "attribute"}));
  Text nothing;
  const Text* separator = &nothing;
  if (bound[0]) {
    ASSIGN_OR_RETURN(separator, to_text(heap, *bound[0]));
  }
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  TextBuilder out;
  for (size_t i = 0; i < items.size(); ++i) {
    Value one = items[i];
    if (bound[1]) {
      ASSIGN_OR_RETURN(one, follow(heap, one, *bound[1]));
    }
    ASSIGN_OR_RETURN(const Text* part, to_text(heap, one));
    const size_t size = part->bytes.size() + separator->bytes.size();
    RETURN_IF_ERROR(heap.spend(1 + size / 64));
    RETURN_IF_ERROR(heap.reserve(size));
    if (i > 0) out.append(*separator);
    out.append(*part);
  }
  return out.finish(heap);
}

Result<Value> replace_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("replace", arguments, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const Text* text, to_text(heap, value));
  ASSIGN_OR_RETURN(const Text* old_part, to_text(heap, *bound[0]));
  ASSIGN_OR_RETURN(const Text* new_part, to_text(heap, *bound[1]));
  int64_t count = -1;
  if (bound[2] && !bound[2]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(count, integer_argument("replace", *bound[2]));
  }
  return replace(heap, *text, *old_part, *new_part, count);
}

Result<Value> default_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("default", arguments, {"default_value", "boolean"}));
  const bool by_truth = bound[1] && is_true(*bound[1]);
  if (!value.is(ValueKind::kUndefined) && !(by_truth && !is_true(value))) return value;
  return bound[0] ? Result<Value>(*bound[0]) : heap.text(Text{});
}

Result<Value> tojson(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("tojson", arguments,
                                           {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  if (bound[0] && is_true(*bound[0])) {
    return make_error(ErrorCode::kUnsupported, "tojson with ensure_ascii is not supported");
  }
  if (bound[1] && !bound[1]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(style.indent, integer_argument("tojson", *bound[1]));
    style.item_separator = ",";
  }
  if (bound[2] && !bound[2]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(const auto separators, iterate(heap, *bound[2]));
    if (separators.size() != 2) {
      return make_error(ErrorCode::kInvalidData, "tojson: separators are two strings");
    }
    ASSIGN_OR_RETURN(const Text* between, text_argument("tojson", separators[0]));
    ASSIGN_OR_RETURN(const Text* after_key, text_argument("tojson", separators[1]));
    style.item_separator = between->bytes;
    style.key_separator = after_key->bytes;
  }
  style.sort_keys = bound[3] && is_true(*bound[3]);
  return to_json(heap, value, style);
}

Result<Value> string_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("string", arguments, {}));
  return to_text_value(heap, value);
}

Result<Value> same(Heap&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("safe", arguments, {}));
  return value;
}

// ---- numbers

// A number's digits without white space around and underscores between; empty if it is none.
std::string bare_number(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  if (text.size() > 400) return {};  // longer than any number that is meant
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] == '_') {
      if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return {};
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<double> parse_float(std::string_view text) {
  std::string bare = bare_number(text);
  std::string_view digits = bare;
  if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '+' || (digits.size() < bare.size() && digits[0] == '-')) {
    return std::nullopt;
  }
  if (digits.find('(') != std::string_view::npos) return std::nullopt;
  return parse_double(digits);
}

Result<Value> float_to_integer(double value) {
  if (!(value > -9.2e18 && value < 9.2e18)) {
    return make_error(ErrorCode::kInvalidData, "int: {} does not fit 64 bits", value);
  }
  return integer_value(static_cast<int64_t>(value));
}

Result<Value> int_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("int", arguments, {"default", "base"}));
  if (bound[1]) return make_error(ErrorCode::kUnsupported, "int with a base is not supported");
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  const Value otherwise = bound[0] ? *bound[0] : integer_value(0);
  if (value.is_integral()) return integer_value(value.as_integer());
  if (value.is(ValueKind::kFloat)) {
    return std::isnan(value.number) ? Result<Value>(otherwise) : float_to_integer(value.number);
  }
  if (!value.is(ValueKind::kString)) return otherwise;
  RETURN_IF_ERROR(heap.spend_scan(value.text->bytes.size()));
  const std::string bare = bare_number(value.text->bytes);
  std::string_view digits = bare;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end == digits.data() + digits.size() && !digits.empty()) {
    if (code == std::errc()) return integer_value(number);
    return make_error(ErrorCode::kInvalidData, "int: the number does not fit 64 bits");
  }
  const std::optional<double> as_float = parse_float(value.text->bytes);
  if (!as_float || !std::isfinite(*as_float)) return otherwise;
  return float_to_integer(*as_float);
}

Result<Value> float_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("float", arguments, {"default"}));
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  const Value otherwise = bound[0] ? *bound[0] : float_value(0.0);
  if (value.is_number()) return float_value(value.as_number());
  if (!value.is(ValueKind::kString)) return otherwise;
  RETURN_IF_ERROR(heap.spend_scan(value.text->bytes.size()));
  const std::optional<double> number = parse_float(value.text->bytes);
  return number ? float_value(*number) : otherwise;
}

Result<Value> abs_filter(Heap&, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("abs", arguments, {}));
  if (value.is(ValueKind::kFloat)) return float_value(std::fabs(value.number));
  ASSIGN_OR_RETURN(const int64_t number, integer_argument("abs", value));
  if (number == std::numeric_limits<int64_t>::min()) {
    return make_error(ErrorCode::kInvalidData, "abs: the result does not fit 64 bits");
  }
  return integer_value(number < 0 ? -number : number);
}

// ---- sequences

Result<Value> list_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("list", arguments, {}));
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  return heap.sequence(SequenceKind::kList, items);
}

Result<Value> items_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("items", arguments, {}));
  if (value.is(ValueKind::kUndefined)) return heap.sequence(SequenceKind::kGenerator, {});
  if (!value.is(ValueKind::kDict)) {
    return make_error(ErrorCode::kInvalidData, "items: a {} is not a dict", kind_name(value));
  }
  ASSIGN_OR_RETURN(Value out, call_method(heap, Method{value, "items"}, {}));
  out.sequence->kind = SequenceKind::kGenerator;
  return out;
}

Result<Value> reverse_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  RETURN_IF_ERROR(bind("reverse", arguments, {}));
  if (value.is(ValueKind::kString)) return reverse(heap, *value.text);
  const bool was_generator = value.is_sequence(SequenceKind::kGenerator);
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  std::vector<Value> out(items.rbegin(), items.rend());
  return heap.sequence(was_generator ? SequenceKind::kList : SequenceKind::kGenerator, out);
}

// What sort and unique compare: an attribute of the item, without case unless asked.
Result<std::vector<Value>> sort_keys(Heap& heap, std::span<const Value> items,
                                     const std::optional<Value>& path, bool case_sensitive) {
  std::vector<Value> keys;
  RETURN_IF_ERROR(heap.reserve(items.size() * sizeof(Value)));
  for (const Value& one : items) {
    RETURN_IF_ERROR(heap.spend(1));
    Value key = one;
    if (path && !path->is(ValueKind::kNone)) {
      ASSIGN_OR_RETURN(key, follow(heap, key, *path));
    }
    if (!case_sensitive && key.is(ValueKind::kString)) {
      ASSIGN_OR_RETURN(key, change_case(heap, *key.text, Case::kLower));
    }
    keys.push_back(key);
  }
  return keys;
}

// A stable merge sort of indexes by key; written out because a comparison may fail.
Result<std::vector<size_t>> sorted_order(Heap& heap, const std::vector<Value>& keys,
                                         bool descending) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          ASSIGN_OR_RETURN(const int sign, compare(heap, keys[order[right]], keys[order[left]]));
          take_right = descending ? sign > 0 : sign < 0;
        }
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

Result<Value> sort_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound,
                   bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  ASSIGN_OR_RETURN(const auto keys,
                   sort_keys(heap, items, bound[2], bound[1] && is_true(*bound[1])));
  ASSIGN_OR_RETURN(const auto order, sorted_order(heap, keys, bound[0] && is_true(*bound[0])));
  std::vector<Value> out;
  for (const size_t index : order) out.push_back(items[index]);
  return heap.list(out);
}

Result<Value> unique_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("unique", arguments, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  ASSIGN_OR_RETURN(const auto keys,
                   sort_keys(heap, items, bound[1], bound[0] && is_true(*bound[0])));
  std::vector<Value> out;
  std::vector<size_t> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    bool known = false;
    for (size_t k = 0; k < kept.size() && !known; ++k) {
      ASSIGN_OR_RETURN(known, equal(heap, keys[kept[k]], keys[i]));
    }
    if (known) continue;
    kept.push_back(i);
    out.push_back(items[i]);
  }
  return heap.sequence(SequenceKind::kGenerator, out);
}

// select, reject, selectattr and rejectattr.
template <bool kByAttribute, bool kKeep>
Result<Value> choose(Heap& heap, const Value& value, const Arguments& arguments) {
  std::span<const Value> given = arguments.positional;
  if (!arguments.keywords.empty() || (kByAttribute && given.empty())) {
    return make_error(ErrorCode::kInvalidData, "select: the arguments are not understood");
  }
  Value path;
  if (kByAttribute) {
    path = given[0];
    given = given.subspan(1);
  }
  Test test = nullptr;
  if (!given.empty()) {
    ASSIGN_OR_RETURN(const Text* name, text_argument("select", given[0]));
    test = find_test(name->bytes);
    if (test == nullptr) {
      return make_error(ErrorCode::kUnsupported, "the test '{}' is not supported",
                        name->bytes.substr(0, 40));
    }
    given = given.subspan(1);
  }
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  std::vector<Value> out;
  for (const Value& one : items) {
    RETURN_IF_ERROR(heap.spend(1));
    Value tested = one;
    if (kByAttribute) {
      ASSIGN_OR_RETURN(tested, follow(heap, one, path));
    }
    bool passes = is_true(tested);
    if (test != nullptr) {
      ASSIGN_OR_RETURN(passes, test(heap, tested, given));
    }
    if (passes == kKeep) out.push_back(one);
  }
  return heap.sequence(SequenceKind::kGenerator, out);
}

Result<Value> map_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  std::vector<Value> out;
  if (arguments.positional.empty()) {
    ASSIGN_OR_RETURN(const Bound bound, bind("map", arguments, {"attribute", "default"}, 1));
    ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
    for (const Value& one : items) {
      RETURN_IF_ERROR(heap.spend(1));
      ASSIGN_OR_RETURN(Value found, follow(heap, one, *bound[0]));
      if (found.is(ValueKind::kUndefined) && bound[1]) found = *bound[1];
      out.push_back(found);
    }
    return heap.sequence(SequenceKind::kGenerator, out);
  }
  ASSIGN_OR_RETURN(const Text* name, text_argument("map", arguments.positional[0]));
  const Filter filter = find_filter(name->bytes);
  if (filter == nullptr || name->bytes == "map") {  // map of map could nest without end
    return make_error(ErrorCode::kUnsupported, "map with the filter '{}' is not supported",
                      name->bytes.substr(0, 40));
  }
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  ASSIGN_OR_RETURN(const auto items, iterate(heap, value));
  for (const Value& one : items) {
    RETURN_IF_ERROR(heap.spend(1));
    ASSIGN_OR_RETURN(Value changed, filter(heap, one, rest));
    out.push_back(changed);
  }
  return heap.sequence(SequenceKind::kGenerator, out);
}

constexpr std::pair<std::string_view, Filter> kFilters[] = {
    {"abs", abs_filter},
    {"capitalize", case_filter<Case::kCapitalize>},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"first", first},
    {"float", float_filter},
    {"int", int_filter},
    {"items", items_filter},
    {"join", join},
    {"last", last},
    {"length", length_filter},
    {"list", list_filter},
    {"lower", case_filter<Case::kLower>},
    {"map", map_filter},
    {"reject", choose<false, false>},
    {"rejectattr", choose<true, false>},
    {"replace", replace_filter},
    {"reverse", reverse_filter},
    {"safe", same},
    {"select", choose<false, true>},
    {"selectattr", choose<true, true>},
    {"sort", sort_filter},
    {"string", string_filter},
    {"title", case_filter<Case::kTitleFilter>},
    {"tojson", tojson},
    {"trim", trim},
    {"unique", unique_filter},
    {"upper", case_filter<Case::kUpper>},
};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const auto& [known, filter] : kFilters) {
    if (known == name) return filter;
  }
  return nullptr;
}

}  // namespace troika::model::jinja
