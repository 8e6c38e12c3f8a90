#include "cli/sweep_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "cli/numbers.h"
#include "cli/text.h"

namespace troika::cli {
namespace {

constexpr const char* kKeys[] = {"soc",      "stack",    "model",   "prompt",
                                 "generate", "strategy", "settings"};

// A field of CSV as RFC 4180 wants it.
std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of("\",\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool twice = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (twice) fields.back() += line[++i];
      if (!twice) quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

Json key_json(const SweepKey& key) {
  return {{"soc", key.soc},          {"stack", key.stack},       {"model", key.model},
          {"prompt", key.prompt},    {"generate", key.generate}, {"strategy", key.strategy},
          {"settings", key.settings}};
}

std::optional<SweepKey> key_from(std::string_view line, bool csv) {
  std::vector<std::string> fields;
  if (csv) {
    fields = csv_fields(line);
  } else {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) return std::nullopt;
    for (const char* key : kKeys) {
      if (!row.contains(key)) return std::nullopt;
      fields.push_back(row[key].is_string() ? row[key].get<std::string>() : row[key].dump());
    }
  }
  if (fields.size() < std::size(kKeys)) return std::nullopt;
  const auto prompt = parse_integer("prompt", fields[3], {});
  const auto generate = parse_integer("generate", fields[4], {});
  if (!prompt || !generate) return std::nullopt;
  return SweepKey{fields[0], fields[1], fields[2], *prompt, *generate, fields[5], fields[6]};
}

}  // namespace

SweepFile::SweepFile(SweepFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      csv_(other.csv_),
      empty_(other.empty_),
      done_(std::move(other.done_)) {}

SweepFile::~SweepFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SweepFile> SweepFile::open(const std::string& path, bool csv) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return make_error(ErrorCode::kIo, "{}: {}", in_quotes(path), std::strerror(errno));
  }
  SweepFile file(fd, csv);
  ASSIGN_OR_RETURN(const std::string text, read_text(path));
  RETURN_IF_ERROR(file.read_rows(path, text));
  return file;
}

Status SweepFile::read_rows(const std::string& path, const std::string& text) {
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  size_t number = 0;
  for (size_t begin = 0; begin < whole;) {
    const size_t end = text.find('\n', begin);
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (csv_ && number == 1 && line.rfind("soc,stack,model,", 0) == 0) continue;
    const auto key = key_from(line, csv_);
    if (!key || (csv_ && number == 1)) {
      return make_error(ErrorCode::kInvalidData,
                        "{}: line {} is not a row of a sweep; choose another file for -o",
                        in_quotes(path), number);
    }
    done_.insert(*key);
  }
  empty_ = whole == 0;
  if (whole == 0 && !text.empty() && text.rfind(csv_ ? "soc," : "{\"soc\":", 0) != 0) {
    return make_error(ErrorCode::kInvalidData,
                      "{}: not rows of a sweep; choose another file for -o", in_quotes(path));
  }
  if (whole < text.size() && ::ftruncate(fd_, static_cast<off_t>(whole)) != 0) {
    return make_error(ErrorCode::kIo, "{}: {}", in_quotes(path), std::strerror(errno));
  }
  return {};
}

Status SweepFile::write(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "the sweep's rows: {}", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
  return {};
}

Status SweepFile::add(const SweepKey& key, const Json& values) {
  Json row = key_json(key);
  row.update(values);
  if (!csv_) return write(to_text(row) + "\n");
  std::string names;
  std::string fields;
  for (const auto& [name, value] : row.items()) {
    if (!names.empty()) {
      names += ',';
      fields += ',';
    }
    names += name;
    fields += csv_field(value);
  }
  names += '\n';
  fields += '\n';
  if (empty_) RETURN_IF_ERROR(write(names));
  empty_ = false;
  return write(fields);
}

}  // namespace troika::cli
