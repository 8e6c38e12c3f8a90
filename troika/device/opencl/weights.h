// Weights where kernels read them: as the file has them in shared memory, or packed in memory of
// the device's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "troika/base/held_values.h"
#include "troika/base/result.h"
#include "troika/device/opencl/arena.h"
#include "troika/graph/graph.h"

namespace troika::device::opencl {

// Places are in bytes from the beginning of the buffer.
struct DeviceWeight {
  Piece memory;
  int64_t begin = 0;       // the first weight of the slice
  int64_t row_stride = 0;  // bytes; not packed
  int64_t scales = 0;      // the scales; packed
  bool tiled = false;      // packed in tiles
  int64_t own_bytes = 0;
  int64_t n = 0;
  int64_t k = 0;

  cl_mem buffer() const { return memory.get(); }
};

// How packed.cl reads a slice: quants of all rows, then scales of all rows, both row by row or in
// tiles; plain formats row by row.
enum class Order { kRows, kTiles };
struct PackedWeight {
  std::vector<std::byte> bytes;
  int64_t scales = 0;
};
PackedWeight pack(const graph::WeightSlice& slice, Order order);
// Whether the slice is whole tiles, of a type that product_one.cl reads.
bool can_tile(const graph::WeightSlice& slice);
// Of a packed slice: all bytes, and those before the scales (0 for plain formats).
int64_t packed_bytes(model::TensorType type, int64_t n, int64_t k);
int64_t packed_scales(model::TensorType type, int64_t n, int64_t k);
bool can_read(model::TensorType type);

enum class WeightHome { kShared, kOwn, kOwnPacked };

// One device's weights; kernels of all schedules share a slice. One thread at a time.
class Weights {
 public:
  // Memory of its own is that of `arena`.
  Weights(cl_context context, cl_command_queue queue, WeightHome home, Arena& arena)
      : context_(context), queue_(queue), home_(home), arena_(arena) {}

  // kOutOfMemory with the bytes that did not fit. `order` matters to kOwnPacked.
  Result<std::shared_ptr<const DeviceWeight>> get(const graph::WeightSlice& slice,
                                                  Order order = Order::kRows);
  int64_t own_bytes() const;

 private:
  Result<DeviceWeight> share(const graph::WeightSlice& slice) const;
  Result<DeviceWeight> upload(const graph::WeightSlice& slice, Order order) const;

  cl_context context_;
  cl_command_queue queue_;
  const WeightHome home_;
  Arena& arena_;
  HeldValues<std::pair<graph::WeightSlice, Order>, const DeviceWeight> held_;
};

}  // namespace troika::device::opencl
