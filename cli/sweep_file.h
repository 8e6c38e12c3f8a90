// The file of a sweep: one row for each case, JSON lines or CSV, to which an interrupted sweep
// adds.
#pragma once

#include <set>
#include <string>

#include "cli/json_output.h"
#include "troika/base/result.h"

namespace troika::cli {

// What tells rows apart: all that a forecast depends on.
struct SweepKey {
  std::string soc;
  std::string stack;
  std::string model;
  int64_t prompt = 0;
  int64_t generate = 0;
  std::string strategy;
  std::string settings;

  auto operator<=>(const SweepKey&) const = default;
};

class SweepFile {
 public:
  // Opens `path`, or begins it; what an interrupted write left after the last whole line is cut
  // off. kInvalidData for a file that is not such a one.
  static Result<SweepFile> open(const std::string& path, bool csv);
  ~SweepFile();
  SweepFile(SweepFile&& other) noexcept;
  SweepFile& operator=(SweepFile&&) = delete;

  // Rows that the file had when it was opened.
  const std::set<SweepKey>& done() const { return done_; }
  // `values` has the same keys in every row. The row is in the file when this returns.
  Status add(const SweepKey& key, const Json& values);

 private:
  SweepFile(int fd, bool csv) : fd_(fd), csv_(csv) {}
  Status read_rows(const std::string& path, const std::string& text);
  Status write(const std::string& line);

  int fd_ = -1;
  bool csv_ = false;
  bool empty_ = true;
  std::set<SweepKey> done_;
};

}  // namespace troika::cli
