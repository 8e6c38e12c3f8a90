// Look-up and display of metadata values.
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "troika/model/gguf.h"

namespace troika::model {
namespace {

constexpr size_t kMaxShownBytes = 200;

const char* kind_name(const GgufValue& value) {
  switch (value.index()) {
    case 0:
    case 1:
      return "an integer";
    case 2:
      return "a float";
    case 3:
      return "a bool";
    case 4:
      return "a string";
    default:
      return "an array";
  }
}

const GgufValue* find(const GgufHeader& header, std::string_view key) {
  const auto at = header.metadata.find(key);
  return at == header.metadata.end() ? nullptr : &at->second;
}

tl::unexpected<Error> wrong_kind(std::string_view key, const GgufValue& value, const char* wanted) {
  return make_error(ErrorCode::kInvalidData, "metadata '{}' is {}, not {}", key, kind_name(value),
                    wanted);
}

template <class T>
Result<std::optional<T>> get(const GgufHeader& header, std::string_view key, const char* wanted) {
  const GgufValue* value = find(header, key);
  if (value == nullptr) return std::optional<T>();
  if (const T* typed = std::get_if<T>(value)) return std::optional<T>(*typed);
  return wrong_kind(key, *value, wanted);
}

void append_escaped(std::string& out, unsigned char byte) {
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += fmt::format("\\x{:02x}", byte);
      return;
  }
}

// C1 controls steer terminals as the C0 ones do.
bool is_control(utf8proc_int32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

std::string show(double value) { return fmt::format("{:.7g}", value); }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(uint64_t value) { return std::to_string(value); }
std::string show(int64_t value) { return std::to_string(value); }
std::string show(const std::string& value) { return '"' + printable(value, kMaxShownBytes) + '"'; }

}  // namespace

size_t GgufArray::size() const {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

Result<std::optional<uint64_t>> GgufHeader::get_uint(std::string_view key) const {
  const GgufValue* value = find(*this, key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (const auto* number = std::get_if<uint64_t>(value)) return std::optional<uint64_t>(*number);
  if (const auto* number = std::get_if<int64_t>(value)) {
    if (*number >= 0) return std::optional<uint64_t>(static_cast<uint64_t>(*number));
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is {}, which is negative", key,
                      *number);
  }
  return wrong_kind(key, *value, "an integer");
}

Result<std::optional<double>> GgufHeader::get_float(std::string_view key) const {
  return get<double>(*this, key, "a float");
}

Result<std::optional<bool>> GgufHeader::get_bool(std::string_view key) const {
  return get<bool>(*this, key, "a bool");
}

Result<std::optional<std::string>> GgufHeader::get_string(std::string_view key) const {
  return get<std::string>(*this, key, "a string");
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  const std::string_view shown = text.substr(0, std::min(text.size(), max_bytes));
  size_t i = 0;
  while (i < shown.size()) {
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                                    static_cast<utf8proc_ssize_t>(text.size() - i), &c);
    if (n > 0 && !is_control(c)) {
      out.append(text, i, static_cast<size_t>(n));
      i += static_cast<size_t>(n);
    } else {
      append_escaped(out, static_cast<unsigned char>(text[i]));
      ++i;
    }
  }
  if (shown.size() < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::string to_display(const GgufValue& value, size_t max_elements) {
  if (const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(&value)) {
    std::string out = "[";
    std::visit(
        [&](const auto& values) {
          using Element = typename std::decay_t<decltype(values)>::value_type;
          for (size_t i = 0; i < std::min(values.size(), max_elements); ++i) {
            if (i > 0) out += ", ";
            out += show(static_cast<const Element&>(values[i]));
          }
          if (values.size() > max_elements) {
            out += fmt::format("{}... {} in all", max_elements > 0 ? ", " : "", values.size());
          }
        },
        (*array)->values);
    return out + "]";
  }
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::shared_ptr<const GgufArray>>) {
          return {};
        } else {
          return show(v);
        }
      },
      value);
}

}  // namespace troika::model
