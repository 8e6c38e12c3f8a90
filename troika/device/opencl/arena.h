// Memory of the device's own, handed out in pieces of few large buffers: a driver looks at every
// buffer among the arguments of a launch, so what a launch needs should lie in one or two.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"

namespace troika::device::opencl {

// A place in the device's memory.
struct Place {
  cl_mem buffer = nullptr;
  int64_t offset = 0;  // bytes

  uint64_t floats() const { return static_cast<uint64_t>(offset) / sizeof(float); }
};

// One buffer, and what of it is free.
class Slab;

// A part of a buffer, or a whole one, which goes back when the piece does. Any thread.
class Piece {
 public:
  Piece() = default;
  Piece(BufferHandle whole);  // NOLINT(google-explicit-constructor): a buffer is a piece
  Piece(std::shared_ptr<Slab> slab, int64_t begin, int64_t bytes);
  Piece(Piece&& other) noexcept;
  Piece& operator=(Piece&& other) noexcept;
  ~Piece();

  cl_mem get() const;                       // the buffer; nullptr: nothing
  int64_t begin() const { return begin_; }  // bytes, a multiple of kPieceAlignment
  Place place() const { return {get(), begin_}; }

 private:
  std::shared_ptr<Slab> slab_;
  int64_t begin_ = 0;
  int64_t bytes_ = 0;
};

constexpr int64_t kPieceAlignment = 256;

// One thread at a time; pieces may outlive it.
class Arena {
 public:
  // `largest_buffer`: bytes that the device gives in one.
  Arena(cl_context context, int64_t largest_buffer)
      : context_(context), largest_buffer_(largest_buffer) {}

  // What is in it is undefined. kOutOfMemory.
  Result<Piece> take(int64_t bytes);
  // Of all buffers that hold pieces.
  int64_t bytes() const;

 private:
  Result<std::shared_ptr<Slab>> make_slab(int64_t bytes);

  cl_context context_;
  const int64_t largest_buffer_;
  std::vector<std::weak_ptr<Slab>> slabs_;  // the oldest first
};

}  // namespace troika::device::opencl
