#include "troika/device/opencl/landing.h"

#include <algorithm>
#include <cstring>

namespace troika::device::opencl {
namespace {

constexpr size_t kLeast = size_t{1} << 20;
// Pinned memory is taken from everybody; the logits of 32 rows have 16 MB.
constexpr size_t kMost = size_t{64} << 20;

}  // namespace

Landing::~Landing() { release(); }

void Landing::release() {
  if (memory_ != nullptr) {
    api().EnqueueUnmapMemObject(queue_, buffer_.get(), memory_, 0, nullptr, nullptr);
    api().Finish(queue_);
  }
  memory_ = nullptr;
  buffer_ = BufferHandle();
  capacity_ = used_ = 0;
}

bool Landing::has_room(size_t bytes) {
  if (on_their_way_ == 0) used_ = 0;
  if (used_ + bytes <= capacity_) return true;
  if (on_their_way_ > 0 || bytes > kMost) return false;
  release();
  const size_t wanted = std::max(bytes, kLeast);
  cl_int code = CL_SUCCESS;
  buffer_ = BufferHandle(api().CreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                            wanted, nullptr, &code));
  if (code != CL_SUCCESS) return false;
  void* const mapped =
      api().EnqueueMapBuffer(queue_, buffer_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, wanted,
                             0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS || mapped == nullptr) return false;
  memory_ = static_cast<std::byte*>(mapped);
  capacity_ = wanted;
  return true;
}

Result<bool> Landing::queue(const Place& from, std::byte* to, size_t bytes) {
  if (!has_room(bytes)) return false;
  std::byte* const at = memory_ + used_;
  RETURN_IF_ERROR(check_call("a copy", api().EnqueueReadBuffer(queue_, from.buffer, CL_FALSE,
                                                               static_cast<size_t>(from.offset),
                                                               bytes, at, 0, nullptr, nullptr)));
  used_ += bytes;
  ++on_their_way_;
  queued_.push_back({at, to, bytes});
  return true;
}

void Landing::land(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
  drop(copies);
}

}  // namespace troika::device::opencl
