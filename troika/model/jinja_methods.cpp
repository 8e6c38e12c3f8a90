// Attribute access, subscripts, and the methods of strings, dicts and the loop variable.
#include <algorithm>
#include <limits>

#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_print.h"
#include "troika/model/jinja_text.h"
#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_string_method(std::string_view name) {
  return is_one_of(
      name,
      {"capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
       "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
       "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
       "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
       "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
       "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
       "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
       "swapcase",     "title",       "translate", "upper",      "zfill"});
}

tl::unexpected<Error> unsupported(const Method& method) {
  return make_error(ErrorCode::kUnsupported, "the method '{}' of a {} is not supported",
                    method.name, kind_name(method.self));
}

// `startswith` and `endswith` with a string or a tuple of strings.
Result<Value> has_affix(Heap& heap, const Text& text, const Value& affix, bool at_begin) {
  if (affix.is_sequence(SequenceKind::kTuple)) {
    for (const Value& one : affix.sequence->items) {
      ASSIGN_OR_RETURN(const Text* part, text_argument("startswith", one));
      RETURN_IF_ERROR(heap.spend(1 + part->bytes.size() / 64));
      if (at_begin ? text.bytes.starts_with(part->bytes) : text.bytes.ends_with(part->bytes)) {
        return bool_value(true);
      }
    }
    return bool_value(false);
  }
  ASSIGN_OR_RETURN(const Text* part, text_argument(at_begin ? "startswith" : "endswith", affix));
  RETURN_IF_ERROR(heap.spend_copy(part->bytes.size()));
  return bool_value(at_begin ? text.bytes.starts_with(part->bytes)
                             : text.bytes.ends_with(part->bytes));
}

Result<Value> strip_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind(method.name, arguments, {"chars"}));
  const Text* characters = nullptr;
  if (bound[0] && !bound[0]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(characters, text_argument(method.name, *bound[0]));
  }
  return strip(heap, *method.self.text, characters,
               Ends{method.name != "rstrip", method.name != "lstrip"});
}

Result<Value> split_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind(method.name, arguments, {"sep", "maxsplit"}));
  const Text* separator = nullptr;
  if (bound[0] && !bound[0]->is(ValueKind::kNone)) {
    ASSIGN_OR_RETURN(separator, text_argument(method.name, *bound[0]));
  }
  int64_t limit = -1;
  if (bound[1]) {
    ASSIGN_OR_RETURN(limit, integer_argument(method.name, *bound[1]));
  }
  return split(heap, *method.self.text, separator, limit, method.name == "rsplit");
}

Result<Value> replace_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("replace", arguments, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const Text* old_part, text_argument("replace", *bound[0]));
  ASSIGN_OR_RETURN(const Text* new_part, text_argument("replace", *bound[1]));
  int64_t count = -1;
  if (bound[2]) {
    ASSIGN_OR_RETURN(count, integer_argument("replace", *bound[2]));
  }
  return replace(heap, *method.self.text, *old_part, *new_part, count);
}

Result<Value> join_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("join", arguments, {"iterable"}, 1));
  ASSIGN_OR_RETURN(const auto items, iterate(heap, *bound[0]));
  TextBuilder out;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const Text* part, text_argument("join", items[i]));
    const size_t size = part->bytes.size() + method.self.text->bytes.size();
    RETURN_IF_ERROR(heap.spend(1 + size / 64));
    RETURN_IF_ERROR(heap.reserve(size));
    if (i > 0) out.append(*method.self.text);
    out.append(*part);
  }
  return out.finish(heap);
}

Result<Value> find_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind(method.name, arguments, {"sub"}, 1));
  ASSIGN_OR_RETURN(const Text* part, text_argument(method.name, *bound[0]));
  const bool last = method.name == "rfind" || method.name == "rindex";
  ASSIGN_OR_RETURN(const int64_t at, index_of(heap, *method.self.text, *part, last));
  if (at < 0 && (method.name == "index" || method.name == "rindex")) {
    return make_error(ErrorCode::kInvalidData, "{}: the text is not found", method.name);
  }
  return integer_value(at);
}

Result<Value> count_method(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("count", arguments, {"sub"}, 1));
  ASSIGN_OR_RETURN(const Text* part, text_argument("count", *bound[0]));
  if (part->bytes.empty()) {
    ASSIGN_OR_RETURN(const size_t size, length(heap, method.self));
    return integer_value(static_cast<int64_t>(size) + 1);
  }
  ASSIGN_OR_RETURN(const Value parts, split(heap, *method.self.text, part, -1, false));
  return integer_value(static_cast<int64_t>(parts.sequence->items.size()) - 1);
}

Result<Value> remove_affix(Heap& heap, const Method& method, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind(method.name, arguments, {"affix"}, 1));
  const Text& text = *method.self.text;
  const bool at_begin = method.name == "removeprefix";
  ASSIGN_OR_RETURN(const Value found, has_affix(heap, text, *bound[0], at_begin));
  if (!found.boolean) return method.self;
  const size_t size = bound[0]->text->bytes.size();
  ASSIGN_OR_RETURN(const Text rest,
                   subtext(heap, text, at_begin ? size : 0, text.bytes.size() - size));
  return heap.text(rest);
}

template <class Accepts>
Result<Value> all_characters(Heap& heap, const Text& text, Accepts accepts) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  for (std::string_view rest = text.bytes; !rest.empty();) {
    const Character character = first_character(rest);
    if (!accepts(character.code)) return bool_value(false);
    rest.remove_prefix(character.size);
  }
  return bool_value(!text.bytes.empty());
}

Result<Value> plain_string_method(Heap& heap, const Method& method, const Arguments& arguments) {
  const Text& text = *method.self.text;
  if (!is_one_of(method.name, {"upper", "lower", "title", "capitalize", "isspace", "isascii",
                               "isdigit", "isupper", "islower"})) {
    return unsupported(method);
  }
  RETURN_IF_ERROR(bind(method.name, arguments, {}));
  if (method.name == "upper") return change_case(heap, text, Case::kUpper);
  if (method.name == "lower") return change_case(heap, text, Case::kLower);
  if (method.name == "title") return change_case(heap, text, Case::kTitle);
  if (method.name == "capitalize") return change_case(heap, text, Case::kCapitalize);
  if (method.name == "isspace") return all_characters(heap, text, is_space);
  if (method.name == "isascii") {
    RETURN_IF_ERROR(heap.spend_copy(text.bytes.size()));
    return bool_value(is_ascii(text.bytes));
  }
  if (method.name == "isdigit" && is_ascii(text.bytes)) {
    return all_characters(heap, text, [](int32_t c) { return c >= '0' && c <= '9'; });
  }
  if (method.name == "isupper" || method.name == "islower") {
    const Test test = find_test(method.name.substr(2));
    ASSIGN_OR_RETURN(const bool result, test(heap, method.self, {}));
    return bool_value(result);
  }
  return unsupported(method);
}

Result<Value> string_method(Heap& heap, const Method& method, const Arguments& arguments) {
  const std::string_view name = method.name;
  if (is_one_of(name, {"strip", "lstrip", "rstrip"})) return strip_method(heap, method, arguments);
  if (is_one_of(name, {"split", "rsplit"})) return split_method(heap, method, arguments);
  if (name == "replace") return replace_method(heap, method, arguments);
  if (name == "join") return join_method(heap, method, arguments);
  if (name == "count") return count_method(heap, method, arguments);
  if (is_one_of(name, {"find", "rfind", "index", "rindex"})) {
    return find_method(heap, method, arguments);
  }
  if (is_one_of(name, {"startswith", "endswith"})) {
    ASSIGN_OR_RETURN(const Bound bound, bind(name, arguments, {"affix"}, 1));
    return has_affix(heap, *method.self.text, *bound[0], name == "startswith");
  }
  if (is_one_of(name, {"removeprefix", "removesuffix"})) {
    return remove_affix(heap, method, arguments);
  }
  if (name == "splitlines") {
    ASSIGN_OR_RETURN(const Bound bound, bind(name, arguments, {"keepends"}));
    return split_lines(heap, *method.self.text, bound[0] && is_true(*bound[0]));
  }
  return plain_string_method(heap, method, arguments);
}

Result<Value> dict_method(Heap& heap, const Method& method, const Arguments& arguments) {
  const Dict& dict = *method.self.dict;
  if (method.name == "get") {
    ASSIGN_OR_RETURN(const Bound bound, bind("get", arguments, {"key", "default"}, 1));
    ASSIGN_OR_RETURN(const DictEntry* entry, find(heap, dict, *bound[0]));
    if (entry != nullptr) return entry->value;
    return bound[1] ? *bound[1] : none_value();
  }
  if (!is_one_of(method.name, {"keys", "values", "items", "copy"})) return unsupported(method);
  RETURN_IF_ERROR(bind(method.name, arguments, {}));
  if (method.name == "copy") return method.self;
  std::vector<Value> out;
  for (const DictEntry& entry : dict.entries) {
    RETURN_IF_ERROR(heap.spend(1));
    if (method.name == "items") {
      const Value pair[] = {entry.key, entry.value};
      ASSIGN_OR_RETURN(Value item, heap.sequence(SequenceKind::kTuple, pair));
      out.push_back(item);
    } else {
      out.push_back(method.name == "keys" ? entry.key : entry.value);
    }
  }
  return heap.sequence(method.name == "items"  ? SequenceKind::kItems
                       : method.name == "keys" ? SequenceKind::kKeys
                                               : SequenceKind::kValues,
                       out);
}

Result<Value> sequence_method(Heap& heap, const Method& method, const Arguments& arguments) {
  if (method.name != "index" && method.name != "count") return unsupported(method);
  ASSIGN_OR_RETURN(const Bound bound, bind(method.name, arguments, {"value"}, 1));
  int64_t count = 0;
  for (size_t i = 0; i < method.self.sequence->items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equal(heap, method.self.sequence->items[i], *bound[0]));
    if (same && method.name == "index") return integer_value(static_cast<int64_t>(i));
    if (same) ++count;
  }
  if (method.name == "index") {
    return make_error(ErrorCode::kInvalidData, "index: the value is not in the list");
  }
  return integer_value(count);
}

Result<Value> loop_method(Heap& heap, const Method& method, const Arguments& arguments) {
  Loop& loop = *method.self.loop;
  if (!arguments.keywords.empty()) return unsupported(method);
  if (method.name == "cycle") {
    if (arguments.positional.empty()) {
      return make_error(ErrorCode::kInvalidData, "loop.cycle() without arguments");
    }
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  ASSIGN_OR_RETURN(Value now, heap.sequence(SequenceKind::kTuple, arguments.positional));
  bool changed = true;
  if (loop.last_changed != nullptr) {
    Value last = now;
    last.sequence = const_cast<Sequence*>(loop.last_changed);
    ASSIGN_OR_RETURN(const bool same, equal(heap, now, last));
    changed = !same;
  }
  loop.last_changed = now.sequence;
  return bool_value(changed);
}

Result<Value> loop_attribute(Heap& heap, const Value& value, const std::string& name) {
  const Loop& loop = *value.loop;
  const auto index = static_cast<int64_t>(loop.index);
  const auto size = static_cast<int64_t>(loop.items.size());
  if (name == "index") return integer_value(index + 1);
  if (name == "index0") return integer_value(index);
  if (name == "revindex") return integer_value(size - index);
  if (name == "revindex0") return integer_value(size - index - 1);
  if (name == "first") return bool_value(index == 0);
  if (name == "last") return bool_value(index + 1 == size);
  if (name == "length") return integer_value(size);
  if (name == "depth") return integer_value(1);  // it counts recursion, not nesting
  if (name == "depth0") return integer_value(0);
  if (name == "previtem") {
    return index > 0 ? loop.items[loop.index - 1] : undefined_value(&name);
  }
  if (name == "nextitem") {
    return index + 1 < size ? loop.items[loop.index + 1] : undefined_value(&name);
  }
  if (name == "cycle" || name == "changed") return heap.method(value, name);
  return undefined_value(&name);
}

Result<Value> slot(Heap& heap, const Value& value, int64_t index) {
  if (value.is(ValueKind::kString)) {
    ASSIGN_OR_RETURN(const auto found, character_at(heap, *value.text, index));
    return found ? *found : undefined_value();
  }
  const auto items = value.sequence->items;
  if (index < 0) index += static_cast<int64_t>(items.size());
  if (index < 0 || static_cast<size_t>(index) >= items.size()) return undefined_value();
  return items[static_cast<size_t>(index)];
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  switch (self.kind) {
    case ValueKind::kString:
      return is_string_method(name);
    case ValueKind::kDict:
      return is_one_of(name, {"get", "keys", "values", "items", "copy", "update", "pop", "popitem",
                              "setdefault", "clear", "fromkeys"});
    case ValueKind::kSequence:
      if (self.sequence->kind == SequenceKind::kTuple ||
          self.sequence->kind == SequenceKind::kRange) {
        return is_one_of(name, {"index", "count"});
      }
      return self.sequence->kind == SequenceKind::kList &&
             is_one_of(name, {"index", "count", "append", "extend", "insert", "pop", "remove",
                              "clear", "reverse", "sort", "copy"});
    default:
      return false;
  }
}

Result<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments) {
  switch (method.self.kind) {
    case ValueKind::kString:
      return string_method(heap, method, arguments);
    case ValueKind::kDict:
      return dict_method(heap, method, arguments);
    case ValueKind::kSequence:
      return sequence_method(heap, method, arguments);
    case ValueKind::kLoop:
      return loop_method(heap, method, arguments);
    default:
      return unsupported(method);
  }
}

Result<Value> attribute(Heap& heap, const Value& value, const std::string& name) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (value.is(ValueKind::kLoop)) return loop_attribute(heap, value, name);
  if (value.is(ValueKind::kNamespace)) {
    for (const Binding* b = value.space->first; b != nullptr; b = b->next) {
      RETURN_IF_ERROR(heap.spend(1));
      if (b->name == name) return b->value;
    }
    return undefined_value(&name);
  }
  if (has_method(value, name)) return heap.method(value, name);
  if (value.is(ValueKind::kDict)) {
    RETURN_IF_ERROR(heap.spend(value.dict->entries.size() / 8));
    for (const DictEntry& entry : value.dict->entries) {
      if (entry.key.is(ValueKind::kString) && entry.key.text->bytes == name) return entry.value;
    }
  }
  return undefined_value(&name);
}

Result<Value> item(Heap& heap, const Value& value, const Value& key) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (value.is(ValueKind::kDict)) {
    ASSIGN_OR_RETURN(const DictEntry* entry, find(heap, *value.dict, key));
    if (entry != nullptr) return entry->value;
    if (key.is(ValueKind::kString) && has_method(value, key.text->bytes)) {
      return heap.method(value, key.text->bytes);
    }
    if (!key.is(ValueKind::kString)) return undefined_value();
    ASSIGN_OR_RETURN(const std::string* name, heap.keep(key.text->bytes));
    return undefined_value(name);
  }
  if (key.is_integral() &&
      (value.is(ValueKind::kString) || value.is_sequence(SequenceKind::kList) ||
       value.is_sequence(SequenceKind::kTuple) || value.is_sequence(SequenceKind::kRange))) {
    return slot(heap, value, key.as_integer());
  }
  if (key.is(ValueKind::kString)) {
    ASSIGN_OR_RETURN(const std::string* name, heap.keep(key.text->bytes));
    return attribute(heap, value, *name);
  }
  return undefined_value();
}

Result<int64_t> integer_argument(std::string_view function, const Value& value) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (!value.is_integral()) {
    return make_error(ErrorCode::kInvalidData, "{}: expected an int, found a {}", function,
                      kind_name(value));
  }
  return value.as_integer();
}

Result<const Text*> text_argument(std::string_view function, const Value& value) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (!value.is(ValueKind::kString)) {
    return make_error(ErrorCode::kInvalidData, "{}: expected a str, found a {}", function,
                      kind_name(value));
  }
  return value.text;
}

Result<Bound> bind(std::string_view function, const Arguments& arguments,
                   std::initializer_list<std::string_view> parameters, size_t n_required) {
  Bound out;
  if (arguments.positional.size() > parameters.size()) {
    return make_error(ErrorCode::kInvalidData, "{} takes at most {} arguments, not {}", function,
                      parameters.size(), arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) out[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto* at = std::find(parameters.begin(), parameters.end(), name);
    const auto index = static_cast<size_t>(at - parameters.begin());
    if (at == parameters.end() || out[index]) {
      return make_error(ErrorCode::kInvalidData, "{}: unexpected argument '{}'", function,
                        name.substr(0, 40));
    }
    out[index] = value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (!out[i]) {
      return make_error(ErrorCode::kInvalidData, "{}: the argument '{}' is missing", function,
                        *(parameters.begin() + i));
    }
  }
  return out;
}

}  // namespace troika::model::jinja
