#include "troika/model/gguf_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "troika/model/gguf.h"

namespace troika::model {
namespace {

constexpr uint64_t kBufferBytes = 256 * 1024;

}  // namespace

GgufReader::GgufReader(const ByteSource& source)
    : source_(source), buffer_(std::min(source.size(), kBufferBytes)) {}

tl::unexpected<Error> GgufReader::in_context(Error error) const {
  if (error.message.compare(0, what_.size(), what_) != 0) {
    error.message = what_ + ": " + error.message;
  }
  return tl::unexpected<Error>(std::move(error));
}

tl::unexpected<Error> GgufReader::truncated(uint64_t needed) const {
  return make_error(ErrorCode::kInvalidData,
                    "{}: {} more bytes are needed at byte {}, but the file has {} bytes; it is "
                    "incomplete or damaged",
                    what_, needed, position(), source_.size());
}

Status GgufReader::claim(uint64_t count, uint64_t file_bytes, uint64_t memory_bytes) {
  if (count > remaining() / file_bytes) {
    return make_error(ErrorCode::kInvalidData,
                      "{}: {} elements are announced at byte {}, but only {} bytes follow in the "
                      "file; it is incomplete or damaged",
                      what_, count, position(), remaining());
  }
  if (memory_bytes != 0 && count > (kMaxHeaderMemory - claimed_) / memory_bytes) {
    return make_error(ErrorCode::kInvalidData,
                      "{}: {} elements here bring the header to more than {} MiB of memory, which "
                      "no sound model needs",
                      what_, count, kMaxHeaderMemory >> 20);
  }
  claimed_ += count * memory_bytes;
  return {};
}

Status GgufReader::refill() {
  buffer_offset_ += filled_;
  next_ = 0;
  filled_ = 0;
  const size_t n = std::min<uint64_t>(buffer_.size(), source_.size() - buffer_offset_);
  RETURN_IF_ERROR(source_.read(buffer_offset_, std::span(buffer_.data(), n)));
  filled_ = n;
  return {};
}

Status GgufReader::read_bytes(std::byte* out, uint64_t n) {
  if (n > remaining()) return truncated(n);
  while (n > 0) {
    if (next_ == filled_) RETURN_IF_ERROR(refill());
    const size_t part = std::min<uint64_t>(n, filled_ - next_);
    std::memcpy(out, buffer_.data() + next_, part);
    next_ += part;
    out += part;
    n -= part;
  }
  return {};
}

Result<std::string> GgufReader::read_string(uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const uint64_t n, read<uint64_t>());
  if (n > remaining()) return truncated(n);
  if (n > max_bytes) {
    return make_error(ErrorCode::kInvalidData, "{}: a name of {} bytes; at most {} are allowed",
                      what_, n, max_bytes);
  }
  constexpr uint64_t kInsideString = 15;  // shorter ones need no memory of their own
  RETURN_IF_ERROR(claim(1, 1, n > kInsideString ? n + 32 : 0));
  std::string text(n, '\0');
  RETURN_IF_ERROR(read_bytes(reinterpret_cast<std::byte*>(text.data()), n));
  return text;
}

}  // namespace troika::model
