// What kernels know of a batch: one array of integers on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/opencl/arena.h"

namespace troika::device::opencl {

// Where its parts begin. Tokens, one for each row; for each row the place of its key in the cache,
// block * kKvBlockTokens + slot; for each row where its sequence's block table begins and its
// position; the rows whose logits are wanted.
struct BatchPlaces {
  int64_t tokens = 0;
  int64_t keys = 0;
  int64_t rows = 0;
  int64_t wanted = 0;
};

struct PackedBatch {
  std::vector<int32_t> data;
  BatchPlaces places;
};
PackedBatch pack_batch(const BatchView& batch);

// The batch that the device holds; the tasks of a pass share one. One thread at a time.
class BatchData {
 public:
  BatchData(Arena& arena, cl_command_queue queue) : arena_(arena), queue_(queue) {}

  // Queues a copy unless the device has just this batch. What is copied from must live until the
  // queue has come to it, and is handed out for that.
  Status put(const BatchView& batch);

  Place place() const { return memory_.place(); }
  uint64_t generation() const { return generation_; }  // changes with the place
  const BatchPlaces& places() const { return packed_->places; }
  std::shared_ptr<const PackedBatch> source() const { return packed_; }

 private:
  Arena& arena_;
  cl_command_queue queue_;
  Piece memory_;
  size_t capacity_ = 0;  // integers
  uint64_t generation_ = 0;
  std::shared_ptr<const PackedBatch> packed_;
};

}  // namespace troika::device::opencl
