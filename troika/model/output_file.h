// Writes a file under a temporary name and gives it its own name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

// Removes the temporary file unless commit() succeeded. Move-only.
class OutputFile {
 public:
  // Replaces an existing regular file (a symbolic link's target) on commit; kInvalidArgument if
  // `path` is anything else.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(std::span<const std::byte> bytes);
  Status write_zeros(uint64_t n);
  // Bytes written so far.
  uint64_t size() const { return size_; }
  Status commit();

 private:
  OutputFile(int fd, std::string path, std::string temporary);
  Status flush();
  Status write_through(std::span<const std::byte> bytes);

  int fd_ = -1;
  std::string path_;
  std::string temporary_;
  std::vector<std::byte> buffer_;
  uint64_t size_ = 0;
};

}  // namespace troika::model
