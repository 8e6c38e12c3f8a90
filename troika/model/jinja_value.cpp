#include "troika/model/jinja_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {

Value none_value() {
  Value out;
  out.kind = ValueKind::kNone;
  return out;
}

Value bool_value(bool value) {
  Value out;
  out.kind = ValueKind::kBool;
  out.boolean = value;
  return out;
}

Value integer_value(int64_t value) {
  Value out;
  out.kind = ValueKind::kInteger;
  out.integer = value;
  return out;
}

Value float_value(double value) {
  Value out;
  out.kind = ValueKind::kFloat;
  out.number = value;
  return out;
}

Value undefined_value(const std::string* name) {
  Value out;
  out.missing = name;
  return out;
}

Value function_value(Function function) {
  Value out;
  out.kind = ValueKind::kFunction;
  out.function = function;
  return out;
}

std::string_view kind_name(const Value& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
      return "undefined value";
    case ValueKind::kNone:
      return "none";
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kInteger:
      return "int";
    case ValueKind::kFloat:
      return "float";
    case ValueKind::kString:
      return "str";
    case ValueKind::kDict:
      return "dict";
    case ValueKind::kNamespace:
      return "namespace";
    case ValueKind::kLoop:
      return "loop";
    case ValueKind::kMacro:
      return "macro";
    case ValueKind::kFunction:
      return "function";
    case ValueKind::kMethod:
      return "method";
    case ValueKind::kSequence:
      break;
  }
  switch (value.sequence->kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kKeys:
      return "dict_keys";
    case SequenceKind::kValues:
      return "dict_values";
    case SequenceKind::kItems:
      return "dict_items";
    case SequenceKind::kGenerator:
      return "generator";
  }
  return "value";
}

// ---- Heap

Heap::Heap(const ChatTemplateLimits& limits) : limits_(limits) {}

Status Heap::spend(size_t steps) {
  if (steps > limits_.max_steps - steps_) {
    steps_ = limits_.max_steps;
    return make_error(ErrorCode::kInvalidData, "the template runs longer than {} steps",
                      limits_.max_steps);
  }
  steps_ += steps;
  return {};
}

Status Heap::go_deeper(size_t depth) {
  RETURN_IF_ERROR(spend(1));
  if (depth > limits_.max_depth) {
    return make_error(ErrorCode::kInvalidData, "a value nested deeper than {} levels",
                      limits_.max_depth);
  }
  return {};
}

tl::unexpected<Error> Heap::reserve_failed() const {
  return make_error(ErrorCode::kInvalidData, "the template needs more than {} bytes of memory",
                    limits_.max_memory_bytes);
}

Status Heap::reserve(size_t bytes) {
  if (bytes > limits_.max_memory_bytes - bytes_) {
    bytes_ = limits_.max_memory_bytes;
    return reserve_failed();
  }
  bytes_ += bytes;
  return {};
}

Result<void*> Heap::allocate_bytes(size_t size) {
  const size_t padded = (size + kAlignment - 1) / kAlignment * kAlignment;
  RETURN_IF_ERROR(reserve(padded));
  if (padded > free_bytes_) {
    if (padded >= kChunkBytes / 4) {  // its own chunk; the current one stays in use
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(padded));
      return chunks_.back().get();
    }
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkBytes));
    free_ = chunks_.back().get();
    free_bytes_ = kChunkBytes;
  }
  void* out = free_;
  free_ += padded;
  free_bytes_ -= padded;
  return out;
}

Result<Value> Heap::text(const Text& text) {
  Value out;
  out.kind = ValueKind::kString;
  ASSIGN_OR_RETURN(out.text, make(text));
  return out;
}

Result<Value> Heap::view(std::string_view bytes, bool from_template) {
  if (bytes.empty()) return text(Text{});
  ASSIGN_OR_RETURN(Run * run, make(Run{bytes.size(), from_template}));
  return text(Text{bytes, std::span<const Run>(run, 1)});
}

Result<Value> Heap::copy(std::string_view bytes, bool from_template) {
  RETURN_IF_ERROR(spend_copy(bytes.size()));
  ASSIGN_OR_RETURN(std::span<char> memory, allocate<char>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), memory.begin());
  return view(std::string_view(memory.data(), memory.size()), from_template);
}

Result<Value> Heap::sequence(SequenceKind kind, std::span<const Value> items) {
  RETURN_IF_ERROR(spend(items.size() / 16));
  ASSIGN_OR_RETURN(std::span<Value> memory, allocate<Value>(items.size()));
  std::copy(items.begin(), items.end(), memory.begin());
  Value out;
  out.kind = ValueKind::kSequence;
  ASSIGN_OR_RETURN(out.sequence, make(Sequence{kind, memory, 0}));
  return out;
}

Result<Value> Heap::dict(std::span<const DictEntry> entries) {
  ASSIGN_OR_RETURN(std::span<DictEntry> memory, allocate<DictEntry>(entries.size()));
  size_t count = 0;
  for (const DictEntry& entry : entries) {
    if (!entry.key.is_number() && !entry.key.is(ValueKind::kString) &&
        !entry.key.is(ValueKind::kNone)) {
      return make_error(ErrorCode::kUnsupported, "a {} as key of a dict", kind_name(entry.key));
    }
    Dict known{memory.first(count)};
    ASSIGN_OR_RETURN(const DictEntry* old, find(*this, known, entry.key));
    if (old != nullptr) {
      memory[static_cast<size_t>(old - memory.data())].value = entry.value;
    } else {
      memory[count++] = entry;
    }
  }
  Value out;
  out.kind = ValueKind::kDict;
  ASSIGN_OR_RETURN(out.dict, make(Dict{memory.first(count)}));
  return out;
}

Result<Value> Heap::method(const Value& self, std::string_view name) {
  Value out;
  out.kind = ValueKind::kMethod;
  ASSIGN_OR_RETURN(out.method, make(Method{self, name}));
  return out;
}

Result<const std::string*> Heap::keep(std::string_view name) {
  RETURN_IF_ERROR(reserve(sizeof(std::string) + name.size()));
  return &names_.emplace_back(name);
}

// ---- Text

void TextBuilder::append(std::string_view bytes, bool from_template) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().from_template == from_template) {
    runs_.back().size += bytes.size();
  } else {
    runs_.push_back(Run{bytes.size(), from_template});
  }
}

void TextBuilder::append(const Text& text) {
  for_each_run(text, [&](std::string_view bytes, bool origin) { append(bytes, origin); });
}

Result<Value> TextBuilder::finish(Heap& heap) const {
  RETURN_IF_ERROR(heap.spend_copy(bytes_.size()));
  ASSIGN_OR_RETURN(std::span<char> memory, heap.allocate<char>(bytes_.size()));
  std::copy(bytes_.begin(), bytes_.end(), memory.begin());
  ASSIGN_OR_RETURN(std::span<Run> runs, heap.allocate<Run>(runs_.size()));
  std::copy(runs_.begin(), runs_.end(), runs.begin());
  return heap.text(Text{std::string_view(memory.data(), memory.size()), runs});
}

Result<Text> subtext(Heap& heap, const Text& text, size_t begin, size_t size) {
  Text out{text.bytes.substr(begin, size), {}};
  if (size == 0) return Text{};
  if (begin == 0 && size == text.bytes.size()) return text;
  size_t first = 0;
  size_t offset = 0;  // of run `first`
  while (offset + text.runs[first].size <= begin) offset += text.runs[first++].size;
  size_t last = first;
  size_t end = offset + text.runs[first].size;  // of run `last`
  while (end < begin + size) end += text.runs[++last].size;
  RETURN_IF_ERROR(heap.spend(last / 16));
  ASSIGN_OR_RETURN(std::span<Run> runs, heap.allocate<Run>(last - first + 1));
  std::copy_n(text.runs.begin() + static_cast<std::ptrdiff_t>(first), runs.size(), runs.begin());
  runs.front().size -= begin - offset;
  runs.back().size -= end - (begin + size);
  out.runs = runs;
  return out;
}

// ---- meaning

bool is_true(const Value& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
    case ValueKind::kNone:
      return false;
    case ValueKind::kBool:
      return value.boolean;
    case ValueKind::kInteger:
      return value.integer != 0;
    case ValueKind::kFloat:
      return value.number != 0;
    case ValueKind::kString:
      return !value.text->bytes.empty();
    case ValueKind::kSequence:
      return value.sequence->kind == SequenceKind::kGenerator || !value.sequence->items.empty();
    case ValueKind::kDict:
      return !value.dict->entries.empty();
    case ValueKind::kLoop:
      return !value.loop->items.empty();
    default:
      return true;
  }
}

namespace {

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    const int64_t x = a.as_integer();
    const int64_t y = b.as_integer();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const double x = a.as_number();
  const double y = b.as_number();
  return x < y ? -1 : x > y ? 1 : 0;
}

bool unordered(const Value& a, const Value& b) {
  return (a.is(ValueKind::kFloat) && std::isnan(a.number)) ||
         (b.is(ValueKind::kFloat) && std::isnan(b.number));
}

}  // namespace

Result<bool> equal(Heap& heap, const Value& a, const Value& b, size_t depth) {
  RETURN_IF_ERROR(heap.go_deeper(depth));
  if (a.is_number() && b.is_number()) return !unordered(a, b) && compare_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case ValueKind::kUndefined:
    case ValueKind::kNone:
      return true;
    case ValueKind::kString: {
      if (a.text->bytes.size() != b.text->bytes.size()) return false;
      RETURN_IF_ERROR(heap.spend_copy(a.text->bytes.size()));
      return a.text->bytes == b.text->bytes;
    }
    case ValueKind::kSequence: {
      if (a.sequence == b.sequence) return true;
      if (a.sequence->kind != b.sequence->kind ||
          a.sequence->items.size() != b.sequence->items.size() ||
          a.sequence->kind == SequenceKind::kGenerator) {
        return false;
      }
      for (size_t i = 0; i < a.sequence->items.size(); ++i) {
        ASSIGN_OR_RETURN(const bool same,
                         equal(heap, a.sequence->items[i], b.sequence->items[i], depth + 1));
        if (!same) return false;
      }
      return true;
    }
    case ValueKind::kDict: {
      if (a.dict->entries.size() != b.dict->entries.size()) return false;
      for (const DictEntry& entry : a.dict->entries) {
        ASSIGN_OR_RETURN(const DictEntry* other, find(heap, *b.dict, entry.key));
        if (other == nullptr) return false;
        ASSIGN_OR_RETURN(const bool same, equal(heap, entry.value, other->value, depth + 1));
        if (!same) return false;
      }
      return true;
    }
    case ValueKind::kNamespace:
      return a.space == b.space;
    case ValueKind::kLoop:
      return a.loop == b.loop;
    case ValueKind::kMacro:
      return a.macro == b.macro;
    case ValueKind::kFunction:
      return a.function == b.function;
    default:
      return false;
  }
}

Result<int> compare(Heap& heap, const Value& a, const Value& b, size_t depth) {
  RETURN_IF_ERROR(heap.go_deeper(depth));
  if (a.is(ValueKind::kUndefined)) return undefined_error(a);
  if (b.is(ValueKind::kUndefined)) return undefined_error(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is(ValueKind::kString) && b.is(ValueKind::kString)) {
    RETURN_IF_ERROR(heap.spend_copy(std::min(a.text->bytes.size(), b.text->bytes.size())));
    return a.text->bytes.compare(b.text->bytes);
  }
  if ((a.is_sequence(SequenceKind::kList) && b.is_sequence(SequenceKind::kList)) ||
      (a.is_sequence(SequenceKind::kTuple) && b.is_sequence(SequenceKind::kTuple))) {
    const auto x = a.sequence->items;
    const auto y = b.sequence->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      ASSIGN_OR_RETURN(const bool same, equal(heap, x[i], y[i], depth + 1));
      if (!same) return compare(heap, x[i], y[i], depth + 1);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  return make_error(ErrorCode::kInvalidData, "a {} and a {} have no order", kind_name(a),
                    kind_name(b));
}

Result<bool> contains(Heap& heap, const Value& haystack, const Value& needle) {
  if (haystack.is(ValueKind::kString)) {
    if (needle.is(ValueKind::kUndefined)) return undefined_error(needle);
    if (!needle.is(ValueKind::kString)) {
      return make_error(ErrorCode::kInvalidData, "a str contains only str, not {}",
                        kind_name(needle));
    }
    const std::string_view all = haystack.text->bytes;
    const std::string_view part = needle.text->bytes;
    RETURN_IF_ERROR(heap.spend_scan(all.size() + part.size()));
    if (part.empty() || part.size() > all.size()) return part.empty();
    return memmem(all.data(), all.size(), part.data(), part.size()) != nullptr;
  }
  if (haystack.is(ValueKind::kDict)) {
    ASSIGN_OR_RETURN(const DictEntry* entry, find(heap, *haystack.dict, needle));
    return entry != nullptr;
  }
  ASSIGN_OR_RETURN(const std::span<const Value> items, iterate(heap, haystack));
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const bool same, equal(heap, item, needle));
    if (same) return true;
  }
  return false;
}

Result<const DictEntry*> find(Heap& heap, const Dict& dict, const Value& key) {
  RETURN_IF_ERROR(heap.spend(dict.entries.size() / 8));
  for (const DictEntry& entry : dict.entries) {
    if (key.is(ValueKind::kString) && entry.key.is(ValueKind::kString)) {
      const std::string_view a = entry.key.text->bytes;
      const std::string_view b = key.text->bytes;
      if (a.size() != b.size()) continue;
      RETURN_IF_ERROR(heap.spend_copy(a.size()));
      if (a == b) return &entry;
    } else {
      ASSIGN_OR_RETURN(const bool same, equal(heap, entry.key, key));
      if (same) return &entry;
    }
  }
  return nullptr;
}

Result<std::span<const Value>> iterate(Heap& heap, const Value& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
      return std::span<const Value>();
    case ValueKind::kSequence: {
      if (value.sequence->kind != SequenceKind::kGenerator) return value.sequence->items;
      const auto left = value.sequence->items.subspan(value.sequence->taken);
      value.sequence->taken = value.sequence->items.size();
      return left;
    }
    case ValueKind::kDict: {
      ASSIGN_OR_RETURN(std::span<Value> keys, heap.allocate<Value>(value.dict->entries.size()));
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = value.dict->entries[i].key;
      RETURN_IF_ERROR(heap.spend(keys.size() / 16));
      return std::span<const Value>(keys);
    }
    case ValueKind::kString: {
      RETURN_IF_ERROR(heap.spend_scan(value.text->bytes.size()));
      const size_t count = count_characters(value.text->bytes);
      RETURN_IF_ERROR(heap.spend(count));
      ASSIGN_OR_RETURN(std::span<Value> characters, heap.allocate<Value>(count));
      size_t run = 0;
      size_t run_end = value.text->runs.empty() ? 0 : value.text->runs[0].size;
      size_t offset = 0;
      for (Value& out : characters) {
        const size_t size = first_character(value.text->bytes.substr(offset)).size;
        while (offset >= run_end) run_end += value.text->runs[++run].size;
        if (offset + size <= run_end) {
          ASSIGN_OR_RETURN(out, heap.view(value.text->bytes.substr(offset, size),
                                          value.text->runs[run].from_template));
        } else {  // a character put together from bytes of both origins
          ASSIGN_OR_RETURN(const Text part, subtext(heap, *value.text, offset, size));
          ASSIGN_OR_RETURN(out, heap.text(part));
        }
        offset += size;
      }
      return std::span<const Value>(characters);
    }
    default:
      return make_error(ErrorCode::kInvalidData, "a {} cannot be iterated over", kind_name(value));
  }
}

Result<size_t> length(Heap& heap, const Value& value) {
  switch (value.kind) {
    case ValueKind::kUndefined:
      return 0U;
    case ValueKind::kString:
      RETURN_IF_ERROR(heap.spend_scan(value.text->bytes.size()));
      return count_characters(value.text->bytes);
    case ValueKind::kDict:
      return value.dict->entries.size();
    case ValueKind::kLoop:
      return value.loop->items.size();
    case ValueKind::kSequence:
      if (value.sequence->kind != SequenceKind::kGenerator) return value.sequence->items.size();
      break;
    default:
      break;
  }
  return make_error(ErrorCode::kInvalidData, "a {} has no length", kind_name(value));
}

Status bind_variable(Heap& heap, Binding*& first, std::string_view name, const Value& value) {
  for (Binding* b = first; b != nullptr; b = b->next) {
    RETURN_IF_ERROR(heap.spend(1));
    if (b->name == name) {
      b->value = value;
      return {};
    }
  }
  ASSIGN_OR_RETURN(first, heap.make(Binding{name, value, first}));
  return {};
}

tl::unexpected<Error> undefined_error(const Value& value) {
  if (value.missing != nullptr) {
    return make_error(ErrorCode::kInvalidData, "'{}' is undefined", value.missing->substr(0, 80));
  }
  return make_error(ErrorCode::kInvalidData, "the value is undefined");
}

}  // namespace troika::model::jinja
