// Results on their way to the pool through memory that the driver has pinned: into any other a
// driver copies piece by piece through a buffer of its own, which takes several times as long.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/arena.h"

namespace troika::device::opencl {

// One thread at a time.
class Landing {
 public:
  Landing(cl_context context, cl_command_queue queue) : context_(context), queue_(queue) {}
  ~Landing();
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  // What is left to be done once the queue has come to it.
  struct Copy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    size_t bytes = 0;
  };

  // Queues a copy from the device. False, and nothing is queued, where there is no such memory or
  // no room in it.
  Result<bool> queue(const Place& from, std::byte* to, size_t bytes);
  // Those queued since the last call; each list goes to land() or drop() once.
  std::vector<Copy> take() { return std::exchange(queued_, {}); }
  void land(const std::vector<Copy>& copies);
  void drop(const std::vector<Copy>& copies) { on_their_way_ -= copies.size(); }

 private:
  bool has_room(size_t bytes);
  void release();

  cl_context context_;
  cl_command_queue queue_;
  BufferHandle buffer_;
  std::byte* memory_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t on_their_way_ = 0;
  std::vector<Copy> queued_;
};

}  // namespace troika::device::opencl
