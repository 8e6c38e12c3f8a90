#include "cli/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "troika/model/tokenizer.h"

namespace troika::cli {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

tl::unexpected<Error> too_long(const std::string& name, size_t max_bytes) {
  return make_error(ErrorCode::kInvalidArgument,
                    "{} holds more than {} MiB of text; give a smaller file", name,
                    max_bytes >> 20);
}

Result<std::string> read_all(int fd, const std::string& name, size_t max_bytes) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    if (!wait_for_input(fd)) {
      return make_error(ErrorCode::kCancelled, "interrupted while reading {}", name);
    }
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return text;
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return make_error(ErrorCode::kIo, "cannot read {}: {}", name, std::strerror(errno));
    }
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > max_bytes) return too_long(name, max_bytes);
  }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  model::Utf8Stream stream;
  std::string out = stream.push(text);
  return out += stream.finish();
}

std::string printable(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    const bool c1 = c == 0xC2 && i + 1 < valid.size() &&
                    static_cast<unsigned char>(valid[i + 1]) < 0xA0;  // U+0080 to U+009F
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c1) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(valid[++i]));
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string shortened(std::string_view text, size_t max_bytes) {
  std::string line = printable(text.substr(0, max_bytes + 4));
  if (line.size() <= max_bytes) return line;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "...";
}

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[i + 1];
    constexpr std::string_view kFrom = "ntr\\\"'";
    constexpr std::string_view kTo = "\n\t\r\\\"'";
    if (const size_t at = kFrom.find(next); at != std::string_view::npos) {
      out += kTo[at];
      i += 1;
    } else if (next == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 &&
               hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::string> read_text(const std::string& path, size_t max_bytes,
                              std::string_view stdin_hint) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", max_bytes);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return make_error(code, "cannot open {}: {}", in_quotes(path), std::strerror(errno));
  }
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return make_error(ErrorCode::kInvalidArgument,
                      "{} is not a regular file; pipe the text in with '{}' instead",
                      in_quotes(path), stdin_hint);
  }
  const bool fits = info.st_size >= 0 && static_cast<uint64_t>(info.st_size) <= max_bytes;
  auto text = fits ? read_all(fd, in_quotes(path), max_bytes)
                   : Result<std::string>(too_long(in_quotes(path), max_bytes));
  close(fd);
  return text;
}

bool is_file_name(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

std::string nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, std::min<size_t>(3, typed.size() / 3)) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(typed.substr(0, 64), name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace troika::cli
