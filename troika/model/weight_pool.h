// Reads all weights of a file into one page-aligned region of memory, and checks them on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/byte_source.h"
#include "troika/model/gguf.h"
#include "troika/model/weights.h"

namespace troika::model {

// Anonymous memory that begins on a huge page where the system gives huge pages. Move-only.
class PageRegion {
 public:
  // kOutOfMemory with both numbers when `bytes` is more than there is.
  static Result<PageRegion> allocate(uint64_t bytes);
  PageRegion() = default;
  PageRegion(PageRegion&& other) noexcept;
  PageRegion& operator=(PageRegion&& other) noexcept;
  ~PageRegion();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  void* mapping_ = nullptr;
  uint64_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

class WeightPool {
 public:
  // Weights begin on this border within the region.
  static constexpr uint64_t kAlignment = 64;

  WeightPool() = default;
  // `tensors` have supported types, one or two dimensions (further ones are 1) and lie inside
  // `source`. Reads with `threads` threads, the calling one among them; it alone calls `progress`.
  // kInvalidData with tensor and row for a weight that is not finite.
  static Result<WeightPool> read(const ByteSource& source, const std::vector<GgufTensor>& tensors,
                                 int threads,
                                 const std::function<bool(uint64_t, uint64_t)>& progress);

  // The same weights without their data, which is nullptr.
  static WeightPool outline(const std::vector<GgufTensor>& tensors);

  const std::vector<Weight>& weights() const { return weights_; }
  const Weight* find(std::string_view name) const;

 private:
  PageRegion region_;
  std::vector<Weight> weights_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace troika::model
