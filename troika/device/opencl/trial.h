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

  explicit Trial(const Session& session)
      : session_(session), arena_(session.context.get(), session.facts.largest_buffer) {}

  // So many copies of the weight that each launch reads another one from memory, not from a cache;
  // `tiled`: as if in tiles.
  Status prepare(model::TensorType type, int64_t n, int64_t k, bool tiled = false);
  // Random numbers in the weights of task 0 and its inputs. Q4_0.
  Status randomize();

  // Room for so many floats, instead of what was given before. kOutOfMemory.
  Result<Place> room(int64_t floats) {
    ASSIGN_OR_RETURN(room_, arena_.take(floats * static_cast<int64_t>(sizeof(float))));
    return room_.place();
  }

  // Of the `index`th copy. With a norm before it if it is gated.
  ProductTask task(model::TensorType type, int64_t rows, int index, bool gated) const;

  // With a norm before it.
  ProductTask normed(ProductTask task) const {
    task.gain = &gain_;
    task.eps = 1e-5f;
    return task;
  }

  using Launch = std::function<Status(int index)>;
  // The least time of a row of launches in seconds; infinite if the device refuses one.
  double time(int launches, const Launch& launch_one) const;
  // Whether both give the same outputs of task 0 but for rounding, `count` floats.
  bool agree(int64_t count, const Launch& one, const Launch& other) const;

 private:
  Result<Piece> zeros(int64_t bytes);
  Result<std::vector<float>> outputs(int64_t count, const Launch& launch_one) const;
  Status write(const Piece& to, const void* data, size_t bytes) const;
  View view(const Piece& floats, int64_t stride) const {
    return {floats.get(), floats.place().floats(), stride};
  }

  const Session& session_;
  Arena arena_;  // all lies as a model's tensors would
  std::vector<DeviceWeight> weights_;
  DeviceWeight gain_;
  Piece x_;
  Piece y_;
  Piece room_;
};

}  // namespace troika::device::opencl
