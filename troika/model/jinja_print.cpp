#include "troika/model/jinja_print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

tl::unexpected<Error> cannot_print(const Value& value) {
  return make_error(ErrorCode::kUnsupported, "a {} as text is not supported", kind_name(value));
}

// The builder's memory counts as the text goes in.
Status charge(Heap& heap, size_t bytes) {
  RETURN_IF_ERROR(heap.spend_scan(bytes));
  return heap.reserve(bytes);
}

void append_escape(TextBuilder& out, std::string_view bytes, int32_t code, bool origin) {
  if (code == kInvalidByte) {
    out.append(fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0])), origin);
  } else if (code < 0x100) {
    out.append(fmt::format("\\x{:02x}", code), origin);
  } else if (code < 0x10000) {
    out.append(fmt::format("\\u{:04x}", code), origin);
  } else {
    out.append(fmt::format("\\U{:08x}", code), origin);
  }
}

void append_quoted(TextBuilder& out, const Text& text) {
  const bool has_single = text.bytes.find('\'') != std::string_view::npos;
  const bool has_double = text.bytes.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.append(std::string_view(&quote, 1), true);
  for_each_run(text, [&](std::string_view bytes, bool origin) {
    while (!bytes.empty()) {
      const Character character = first_character(bytes);
      const std::string_view self = bytes.substr(0, character.size);
      bytes.remove_prefix(character.size);
      if (character.code == quote || character.code == '\\') {
        out.append("\\", origin);
        out.append(self, origin);
      } else if (character.code == '\n') {
        out.append("\\n", origin);
      } else if (character.code == '\r') {
        out.append("\\r", origin);
      } else if (character.code == '\t') {
        out.append("\\t", origin);
      } else if (is_printable(character.code)) {
        out.append(self, origin);
      } else {
        append_escape(out, self, character.code, origin);
      }
    }
  });
  out.append(std::string_view(&quote, 1), true);
}

Status append_repr(Heap& heap, TextBuilder& out, const Value& value, size_t depth);

Status append_items(Heap& heap, TextBuilder& out, std::span<const Value> items, size_t depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ", true);
    RETURN_IF_ERROR(append_repr(heap, out, items[i], depth + 1));
  }
  return {};
}

Status append_sequence(Heap& heap, TextBuilder& out, const Value& value, size_t depth) {
  const std::span<const Value> items = value.sequence->items;
  switch (value.sequence->kind) {
    case SequenceKind::kList:
      out.append("[", true);
      RETURN_IF_ERROR(append_items(heap, out, items, depth));
      out.append("]", true);
      return {};
    case SequenceKind::kTuple:
      out.append("(", true);
      RETURN_IF_ERROR(append_items(heap, out, items, depth));
      out.append(items.size() == 1 ? ",)" : ")", true);
      return {};
    case SequenceKind::kKeys:
    case SequenceKind::kValues:
    case SequenceKind::kItems:
      out.append(kind_name(value), true);
      out.append("([", true);
      RETURN_IF_ERROR(append_items(heap, out, items, depth));
      out.append("])", true);
      return {};
    default:
      return cannot_print(value);
  }
}

Status append_dict(Heap& heap, TextBuilder& out, const Dict& dict, size_t depth) {
  out.append("{", true);
  bool first = true;
  for (const DictEntry& entry : dict.entries) {
    if (!first) out.append(", ", true);
    first = false;
    RETURN_IF_ERROR(append_repr(heap, out, entry.key, depth + 1));
    out.append(": ", true);
    RETURN_IF_ERROR(append_repr(heap, out, entry.value, depth + 1));
  }
  out.append("}", true);
  return {};
}

Status append_repr(Heap& heap, TextBuilder& out, const Value& value, size_t depth) {
  RETURN_IF_ERROR(heap.go_deeper(depth));
  RETURN_IF_ERROR(charge(heap, 8));
  switch (value.kind) {
    case ValueKind::kUndefined:
      out.append("Undefined", true);
      return {};
    case ValueKind::kNone:
      out.append("None", true);
      return {};
    case ValueKind::kBool:
      out.append(value.boolean ? "True" : "False", true);
      return {};
    case ValueKind::kInteger:
      out.append(fmt::format("{}", value.integer), true);
      return {};
    case ValueKind::kFloat:
      out.append(format_float(value.number), true);
      return {};
    case ValueKind::kString:
      RETURN_IF_ERROR(charge(heap, 4 * value.text->bytes.size()));
      append_quoted(out, *value.text);
      return {};
    case ValueKind::kSequence:
      return append_sequence(heap, out, value, depth);
    case ValueKind::kDict:
      return append_dict(heap, out, *value.dict, depth);
    default:
      return cannot_print(value);
  }
}

// ---- JSON

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  Result<Value> write(const Value& value) {
    RETURN_IF_ERROR(append(value, 0));
    return out_.finish(heap_);
  }

 private:
  Status append(const Value& value, size_t depth) {
    RETURN_IF_ERROR(heap_.go_deeper(depth));
    RETURN_IF_ERROR(charge(heap_, 8));
    switch (value.kind) {
      case ValueKind::kUndefined:
        return undefined_error(value);
      case ValueKind::kNone:
        out_.append("null", true);
        return {};
      case ValueKind::kBool:
        out_.append(value.boolean ? "true" : "false", true);
        return {};
      case ValueKind::kInteger:
        out_.append(fmt::format("{}", value.integer), true);
        return {};
      case ValueKind::kFloat:
        out_.append(number(value.number), true);
        return {};
      case ValueKind::kString:
        return string(*value.text);
      case ValueKind::kDict:
        return dict(*value.dict, depth);
      case ValueKind::kSequence:
        if (value.sequence->kind == SequenceKind::kList ||
            value.sequence->kind == SequenceKind::kTuple) {
          return list(value.sequence->items, depth);
        }
        break;
      default:
        break;
    }
    return make_error(ErrorCode::kInvalidData, "tojson: a {} has no form in JSON",
                      kind_name(value));
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return format_float(value);
  }

  Status string(const Text& text) {
    static constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kLetters = "\"\\nrtfb";
    RETURN_IF_ERROR(charge(heap_, 2 * text.bytes.size()));
    out_.append("\"", true);
    for_each_run(text, [&](std::string_view bytes, bool origin) {
      for (size_t i = 0; i < bytes.size(); ++i) {
        const char c = bytes[i];
        if (const size_t at = kSpecial.find(c); at != std::string_view::npos) {
          out_.append("\\", origin);
          out_.append(kLetters.substr(at, 1), origin);
        } else if (static_cast<unsigned char>(c) < 0x20) {
          out_.append(fmt::format("\\u{:04x}", static_cast<unsigned>(c)), origin);
        } else {
          out_.append(bytes.substr(i, 1), origin);
        }
      }
    });
    out_.append("\"", true);
    return {};
  }

  Status line(size_t depth) {
    if (!style_.indent) return {};
    const auto width = static_cast<size_t>(std::clamp<int64_t>(*style_.indent, 0, 1000)) * depth;
    RETURN_IF_ERROR(charge(heap_, width + 1));
    out_.append("\n", true);
    out_.append(std::string(width, ' '), true);
    return {};
  }

  Status list(std::span<const Value> items, size_t depth) {
    out_.append("[", true);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator, true);
      RETURN_IF_ERROR(line(depth + 1));
      RETURN_IF_ERROR(append(items[i], depth + 1));
    }
    if (!items.empty()) RETURN_IF_ERROR(line(depth));
    out_.append("]", true);
    return {};
  }

  Status key(const Value& value) {
    if (value.is(ValueKind::kString)) return string(*value.text);
    out_.append("\"", true);
    RETURN_IF_ERROR(append(value, 0));
    out_.append("\"", true);
    return {};
  }

  Status dict(const Dict& dict, size_t depth) {
    std::vector<const DictEntry*> entries;
    for (const DictEntry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) RETURN_IF_ERROR(sort(entries));
    out_.append("{", true);
    bool first = true;
    for (const DictEntry* entry : entries) {
      if (!first) out_.append(style_.item_separator, true);
      first = false;
      RETURN_IF_ERROR(line(depth + 1));
      RETURN_IF_ERROR(key(entry->key));
      out_.append(style_.key_separator, true);
      RETURN_IF_ERROR(append(entry->value, depth + 1));
    }
    if (!first) RETURN_IF_ERROR(line(depth));
    out_.append("}", true);
    return {};
  }

  Status sort(std::vector<const DictEntry*>& entries) {
    for (const DictEntry* entry : entries) {
      RETURN_IF_ERROR(heap_.spend(16));
      if (!entry->key.is(ValueKind::kString)) {
        return make_error(ErrorCode::kUnsupported, "tojson: sorted keys that are not all strings");
      }
      RETURN_IF_ERROR(heap_.spend_scan(16 * entry->key.text->bytes.size()));
    }
    std::sort(entries.begin(), entries.end(), [](const DictEntry* a, const DictEntry* b) {
      return a->key.text->bytes < b->key.text->bytes;
    });
    return {};
  }

  Heap& heap_;
  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer;
  const auto write = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
    return std::string(buffer.data(), end.ptr);
  };
  std::string scientific = write(std::chars_format::scientific);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  std::string out = write(std::chars_format::fixed);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc()) return value;
  const size_t exponent = text.find_first_of("eE");
  const bool negative = !text.empty() && text[0] == '-';
  const bool tiny = exponent != std::string_view::npos ? text.substr(exponent + 1, 1) == "-"
                                                       : text.substr(negative ? 1 : 0, 1) == "0";
  value = tiny ? 0.0 : HUGE_VAL;
  return negative ? -value : value;
}

Result<Value> to_text_value(Heap& heap, const Value& value) {
  switch (value.kind) {
    case ValueKind::kString:
      return value;
    case ValueKind::kUndefined:
      return heap.text(Text{});
    case ValueKind::kNone:
      return heap.view("None", true);
    case ValueKind::kBool:
      return heap.view(value.boolean ? "True" : "False", true);
    case ValueKind::kInteger:
      return heap.copy(fmt::format("{}", value.integer), true);
    case ValueKind::kFloat:
      return heap.copy(format_float(value.number), true);
    default:
      break;
  }
  TextBuilder out;
  RETURN_IF_ERROR(append_repr(heap, out, value, 0));
  return out.finish(heap);
}

Result<const Text*> to_text(Heap& heap, const Value& value) {
  ASSIGN_OR_RETURN(const Value text, to_text_value(heap, value));
  return text.text;
}

Result<Value> to_json(Heap& heap, const Value& value, const JsonStyle& style) {
  return JsonWriter(heap, style).write(value);
}

}  // namespace troika::model::jinja
