#include "troika/device/opencl/arena.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace troika::device::opencl {
namespace {

// A buffer has room for a quarter of what there is already, so that little of it stays unused.
constexpr int64_t kLeastSlab = int64_t{16} << 20;
constexpr int64_t kMostSlab = int64_t{1} << 30;
constexpr int64_t kSlabPart = 4;

}  // namespace

class Slab {
 public:
  Slab(BufferHandle buffer, int64_t bytes) : buffer_(std::move(buffer)), bytes_(bytes) {
    free_[0] = bytes;
  }

  cl_mem buffer() const { return buffer_.get(); }
  int64_t bytes() const { return bytes_; }

  // Where the first free part of so many bytes begins.
  std::optional<int64_t> take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const auto& part) { return part.second >= bytes; });
    if (found == free_.end()) return std::nullopt;
    const auto [begin, size] = *found;
    free_.erase(found);
    if (size > bytes) free_[begin + bytes] = size - bytes;
    return begin;
  }

  void give_back(int64_t begin, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    auto part = free_.emplace(begin, bytes).first;
    const auto next = std::next(part);
    if (next != free_.end() && part->first + part->second == next->first) {
      part->second += next->second;
      free_.erase(next);
    }
    if (part == free_.begin()) return;
    const auto before = std::prev(part);
    if (before->first + before->second != part->first) return;
    before->second += part->second;
    free_.erase(part);
  }

 private:
  const BufferHandle buffer_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // bytes by where they begin
};

Piece::Piece(BufferHandle whole) : slab_(std::make_shared<Slab>(std::move(whole), 0)) {}

Piece::Piece(std::shared_ptr<Slab> slab, int64_t begin, int64_t bytes)
    : slab_(std::move(slab)), begin_(begin), bytes_(bytes) {}

Piece::Piece(Piece&& other) noexcept
    : slab_(std::move(other.slab_)), begin_(other.begin_), bytes_(other.bytes_) {}

Piece& Piece::operator=(Piece&& other) noexcept {
  std::swap(slab_, other.slab_);
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Piece::~Piece() {
  if (slab_ != nullptr && bytes_ > 0) slab_->give_back(begin_, bytes_);
}

cl_mem Piece::get() const { return slab_ == nullptr ? nullptr : slab_->buffer(); }

Result<std::shared_ptr<Slab>> Arena::make_slab(int64_t bytes) {
  const int64_t usual = std::clamp(this->bytes() / kSlabPart, kLeastSlab, kMostSlab);
  cl_int code = CL_SUCCESS;
  // Where there is no room for more than is wanted, that must do.
  for (const int64_t size : {std::max(bytes, std::min(usual, largest_buffer_)), bytes}) {
    BufferHandle buffer(
        api().CreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<size_t>(size), nullptr, &code));
    if (code == CL_SUCCESS) return std::make_shared<Slab>(std::move(buffer), size);
  }
  return tl::unexpected<Error>(call_error("clCreateBuffer", code));
}

Result<Piece> Arena::take(int64_t bytes) {
  const int64_t size =
      std::max<int64_t>(1, (bytes + kPieceAlignment - 1) / kPieceAlignment) * kPieceAlignment;
  std::erase_if(slabs_, [](const auto& slab) { return slab.expired(); });
  // The newest first: what is wanted one after the other lies together.
  for (auto held = slabs_.rbegin(); held != slabs_.rend(); ++held) {
    const std::shared_ptr<Slab> slab = held->lock();
    if (slab == nullptr) continue;
    if (const auto begin = slab->take(size)) return Piece(slab, *begin, size);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Slab> slab, make_slab(size));
  slabs_.push_back(slab);
  const int64_t begin = slab->take(size).value_or(0);
  return Piece(std::move(slab), begin, size);
}

int64_t Arena::bytes() const {
  int64_t bytes = 0;
  for (const auto& held : slabs_) {
    if (const auto slab = held.lock()) bytes += slab->bytes();
  }
  return bytes;
}

}  // namespace troika::device::opencl
