// Scratch memory for kernels, which load it with aligned instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troika::device::cpu {

class AlignedFloats {
 public:
  // Grows to `count` floats; what was there is lost.
  void reserve(int64_t count) {
    if (count <= size_) return;
    storage_.resize(static_cast<size_t>(count) + kAlignment / sizeof(float));
    size_ = count;
  }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(float)); }
  float* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    const uintptr_t aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
    return storage_.data() + (aligned - address) / sizeof(float);
  }

 private:
  static constexpr size_t kAlignment = 64;  // a cache line, and the widest vector

  std::vector<float> storage_;
  int64_t size_ = 0;
};

}  // namespace troika::device::cpu
