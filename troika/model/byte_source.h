// A random-access source of bytes: a regular file, or memory in tests and fuzzers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "troika/base/result.h"

namespace troika::model {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; kIo on a short read (the file shrank). Any thread may call it.
  virtual Status read(uint64_t offset, std::span<std::byte> out) const = 0;
};

// Opens a regular file (through symbolic links); kInvalidArgument for a directory, FIFO or device.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
// Reads from `bytes`, which must outlive it.
std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes);

}  // namespace troika::model
