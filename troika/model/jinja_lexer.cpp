#include "troika/model/jinja_lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

// Every line end becomes "\n"; one at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  Result<std::vector<Token>> run() {
    while (position_ < source_.size()) RETURN_IF_ERROR(text_and_tag());
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(position_); }
  bool at(std::string_view what) const { return rest().substr(0, what.size()) == what; }
  char peek(size_t offset = 0) const {
    return position_ + offset < source_.size() ? source_[position_ + offset] : '\0';
  }

  void add(TokenKind kind, std::string text) {
    tokens_.push_back(Token{kind, line_, std::move(text)});
  }

  void advance(size_t count) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(position_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), '\n'));
    position_ += count;
  }

  void skip_space() { advance(leading_space(rest())); }

  template <class... Args>
  tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kInvalidData, "chat template, line {}: {}", line_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  // Adds the text before a tag as far as the tag leaves it: `-` takes all white space before the
  // tag, and a block or comment alone on its line takes the line's indentation.
  void add_text(std::string_view text, char sign, bool strips_indentation) {
    const int line_after = line_ + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    const bool line_starting = position_ == 0 || source_[position_ - 1] == '\n';
    std::string_view kept = text;
    if (sign == '-') {
      kept.remove_suffix(trailing_space(text));
    } else if (sign != '+' && strips_indentation) {
      const size_t newline = text.rfind('\n');
      const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if (begin > 0 || line_starting) {
        const std::string_view indentation = text.substr(begin);
        if (leading_space(indentation) == indentation.size()) kept = text.substr(0, begin);
      }
    }
    if (!kept.empty()) add(TokenKind::kText, std::string(kept));
    line_ = line_after;
    position_ += text.size();
  }

  // Takes a closing mark with its sign, and what it swallows behind it.
  bool take_end(std::string_view mark, bool trims_newline) {
    if (peek() == '-' && source_.compare(position_ + 1, mark.size(), mark) == 0) {
      advance(mark.size() + 1);
      skip_space();
      return true;
    }
    if (trims_newline && peek() == '+' && source_.compare(position_ + 1, mark.size(), mark) == 0) {
      advance(mark.size() + 1);
      return true;
    }
    if (!at(mark)) return false;
    advance(mark.size());
    if (trims_newline && peek() == '\n') advance(1);
    return true;
  }

  Status text_and_tag() {
    size_t tag = position_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add_text(rest(), '+', false);
        return {};
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char kind = source_[tag + 1];
    const char next = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    add_text(rest().substr(0, tag - position_), sign, kind != '{');
    const int begin_line = line_;
    const size_t begin_size = sign != '\0' ? 3 : 2;
    if (kind == '#') {
      advance(begin_size);
      return comment(begin_line);
    }
    if (kind == '%' && take_raw_begin(begin_size)) return raw(begin_line);
    advance(begin_size);
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    return tag_body(kind == '{', begin_line);
  }

  Status comment(int begin_line) {
    const size_t end = source_.find("#}", position_);
    if (end == std::string::npos) {
      line_ = begin_line;
      return fail("the comment that begins here has no end (#}})");
    }
    size_t body = end - position_;
    if (body > 0 && (source_[end - 1] == '-' || source_[end - 1] == '+')) --body;
    advance(body);
    take_end("#}", true);
    return {};
  }

  bool take_raw_begin(size_t begin_size) {
    std::string_view view = rest().substr(begin_size);
    size_t size = begin_size;
    const auto skip = [&](size_t count) {
      view.remove_prefix(count);
      size += count;
    };
    skip(leading_space(view));
    if (view.substr(0, 3) != "raw") return false;
    skip(3);
    skip(leading_space(view));
    const bool strips = view.substr(0, 3) == "-%}";
    if (!strips && view.substr(0, 2) != "%}") return false;
    skip(strips ? 3 : 2);
    if (strips) skip(leading_space(view));
    advance(size);
    return true;
  }

  // The text up to {% endraw %}, whose tag trims like any other.
  Status raw(int begin_line) {
    for (size_t tag = source_.find("{%", position_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      size_t i = tag + 2;
      const char next = i < source_.size() ? source_[i] : '\0';
      const char sign = next == '-' || next == '+' ? next : '\0';
      if (sign != '\0') ++i;
      i += leading_space(std::string_view(source_).substr(i));
      if (source_.compare(i, 6, "endraw") != 0) continue;
      i += 6;
      i += leading_space(std::string_view(source_).substr(i));
      const std::string_view end = std::string_view(source_).substr(i, 3);
      if (end != "-%}" && end != "+%}" && end.substr(0, 2) != "%}") continue;
      add_text(rest().substr(0, tag - position_), sign, true);
      advance(i - position_);
      take_end("%}", true);
      return {};
    }
    line_ = begin_line;
    return fail("the raw block that begins here has no {{% endraw %}}");
  }

  Status tag_body(bool is_variable, int begin_line) {
    const std::string_view mark = is_variable ? "}}" : "%}";
    std::string open;
    for (;;) {
      skip_space();
      if (position_ >= source_.size()) {
        line_ = begin_line;
        return fail("the tag that begins here has no end ({})", mark);
      }
      if (open.empty()) {
        const int line = line_;
        if (take_end(mark, !is_variable)) {
          tokens_.push_back(
              Token{is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, line, ""});
          return {};
        }
      }
      RETURN_IF_ERROR(token(open));
    }
  }

  Status token(std::string& open) {
    const char c = peek();
    if (is_name_start(c)) {
      size_t size = 1;
      while (is_name(peek(size))) ++size;
      add(TokenKind::kName, std::string(rest().substr(0, size)));
      advance(size);
      return {};
    }
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    return symbol(open);
  }

  Status symbol(std::string& open) {
    static constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kSingle = "+-/*%~[](){}><=.:|,;";
    for (const std::string_view symbol : kDouble) {
      if (!at(symbol)) continue;
      add(TokenKind::kOperator, std::string(symbol));
      advance(2);
      return {};
    }
    const char c = peek();
    if (kSingle.find(c) == std::string_view::npos || c == '\0') {
      return fail("unexpected character '{}' in a tag", printable(c));
    }
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return fail("unexpected '{}'", c);
      open.pop_back();
    }
    add(TokenKind::kOperator, std::string(1, c));
    advance(1);
    return {};
  }

  static std::string printable(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) return std::string(1, c);
    return fmt::format("\\x{:02x}", byte);
  }

  size_t digits(size_t offset, std::string& out) const {
    const size_t begin = offset;
    while (is_digit(peek(offset)) ||
           (offset > begin && peek(offset) == '_' && is_digit(peek(offset + 1)))) {
      if (peek(offset) != '_') out += peek(offset);
      ++offset;
    }
    return offset;
  }

  Status number() {
    std::string text;
    size_t size = digits(0, text);
    bool is_float = false;
    const bool after_dot = position_ > 0 && source_[position_ - 1] == '.';
    if (!after_dot && peek(size) == '.' && is_digit(peek(size + 1))) {
      is_float = true;
      text += '.';
      size = digits(size + 1, text);
    }
    if (!after_dot && (peek(size) == 'e' || peek(size) == 'E')) {
      const size_t sign = peek(size + 1) == '+' || peek(size + 1) == '-' ? 1 : 0;
      if (is_digit(peek(size + 1 + sign))) {
        is_float = true;
        text += 'e';
        if (sign == 1) text += peek(size + 1);
        size = digits(size + 1 + sign, text);
      }
    }
    if (!is_float && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos) {
      return fail("the integer {} begins with 0", text);
    }
    if (!is_float && is_name(peek(size))) return fail("a name directly after a number");
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, text);
    advance(size);
    return {};
  }

  Status string(char quote) {
    const int begin_line = line_;
    std::string out;
    size_t i = 1;
    for (; peek(i) != quote; ++i) {
      if (position_ + i >= source_.size()) {
        return fail("the string that begins here has no end ({})", quote);
      }
      if (peek(i) != '\\') {
        out += peek(i);
        continue;
      }
      RETURN_IF_ERROR(escape(i, out));
    }
    advance(i + 1);
    tokens_.push_back(Token{TokenKind::kString, begin_line, std::move(out)});
    return {};
  }

  // Resolves the escape at offset `i` (a backslash) and leaves `i` at its last character.
  Status escape(size_t& i, std::string& out) {
    static constexpr std::string_view kNames = "ntrabfv\\'\"";
    static constexpr std::string_view kValues = "\n\t\r\a\b\f\v\\'\"";
    const char c = peek(++i);
    if (const size_t known = kNames.find(c); known != std::string_view::npos && c != '\0') {
      out += kValues[known];
      return {};
    }
    if (c == '\n') return {};
    if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t count = 0;
      while (count < 3 && peek(i + count) >= '0' && peek(i + count) <= '7') {
        code = code * 8 + static_cast<uint32_t>(peek(i + count++) - '0');
      }
      i += count - 1;
      append_utf8(out, code);
      return {};
    }
    if (c == 'x') return hex_escape(i, 2, out);
    if (c == 'u') return hex_escape(i, 4, out);
    if (c == 'U') return hex_escape(i, 8, out);
    if (c == 'N') return fail("the escape \\N in a string is not known; write the character");
    out += '\\';  // not an escape: both characters stay
    out += c;
    return {};
  }

  Status hex_escape(size_t& i, size_t count, std::string& out) {
    uint32_t code = 0;
    for (size_t k = 1; k <= count; ++k) {
      const char c = peek(i + k);
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_digit(c) && !letter) return fail("damaged escape in a string");
      code = code * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      return fail("an escape in a string names U+{:X}, which is no character", code);
    }
    i += count;
    append_utf8(out, code);
    return {};
  }

  std::string source_;
  size_t position_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace troika::model::jinja
