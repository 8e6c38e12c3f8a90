// What a tuner tries kernels on: products of a size, timed and compared.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "troika/device/opencl/device_session.h"
#include "troika/device/opencl/product_launch.h"

namespace troika::device::opencl {

// Buffers for products of up to kManyRows rows. Weights are zeros, which take as long as other
// numbers, until randomize().
class Trial {
 public:
  static constexpr int64_t kFewRows = 8;
  static constexpr int64_t kManyRows = 512;

  explicit Trial(const Session& session) : session_(session) {}

  // So many copies of the weight that each launch reads another one from memory, not from a cache;
  // `tiled`: as if in tiles.
  Status prepare(model::TensorType type, int64_t n, int64_t k, bool tiled = false);
  // Random numbers in the weights of task 0 and its inputs. Q4_0.
  Status randomize();

  // Of the `index`th copy.
  ProductTask task(model::TensorType type, int64_t rows, int index, bool gated) const;

  using Launch = std::function<Status(int index)>;
  // The least time of a row of launches in seconds; infinite if the device refuses one.
  double time(int launches, const Launch& launch_one) const;
  // Whether both give the same outputs of task 0 but for rounding, `count` floats.
  bool agree(int64_t count, const Launch& one, const Launch& other) const;

 private:
  Result<BufferHandle> buffer(int64_t bytes) const;
  Result<std::vector<float>> outputs(int64_t count, const Launch& launch_one) const;
  Status write(cl_mem to, const void* data, size_t bytes) const;

  const Session& session_;
  std::vector<DeviceWeight> weights_;
  DeviceWeight gain_;
  BufferHandle x_;
  BufferHandle y_;
};

}  // namespace troika::device::opencl
