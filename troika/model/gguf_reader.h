// Reads numbers and strings one after another from a ByteSource, through a bounded buffer, and
// refuses to go past its end or to need more memory than a header may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/byte_source.h"

namespace troika::model {

class GgufReader {
 public:
  // Borrows `source`.
  explicit GgufReader(const ByteSource& source);

  // Names what is read next, for messages: "tensor 'output.weight'".
  void enter(std::string what) { what_ = std::move(what); }
  // The error with what is being read before it; once only.
  tl::unexpected<Error> in_context(Error error) const;

  uint64_t position() const { return buffer_offset_ + next_; }
  uint64_t remaining() const { return source_.size() - position(); }

  template <class T>
  Result<T> read() {
    T value;
    RETURN_IF_ERROR(read_bytes(reinterpret_cast<std::byte*>(&value), sizeof(T)));
    return value;
  }

  // A string with its 8-byte length before it.
  Result<std::string> read_string(uint64_t max_bytes);

  // To be called before memory is taken for `count` elements: fails if the source cannot hold that
  // many of `file_bytes` each, or if all claims together exceed kMaxHeaderMemory.
  Status claim(uint64_t count, uint64_t file_bytes, uint64_t memory_bytes);

 private:
  Status read_bytes(std::byte* out, uint64_t n);
  Status refill();
  tl::unexpected<Error> truncated(uint64_t needed) const;

  const ByteSource& source_;
  std::vector<std::byte> buffer_;
  uint64_t buffer_offset_ = 0;  // of buffer_[0] in the source
  size_t next_ = 0;             // next byte of the buffer
  size_t filled_ = 0;
  uint64_t claimed_ = 0;
  std::string what_ = "the header";
};

}  // namespace troika::model
