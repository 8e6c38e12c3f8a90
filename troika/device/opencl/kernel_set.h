// Which kernel with which tile sizes computes what, on which class of device.
#pragma once

#include <cstdint>
#include <map>

#include "troika/device/device.h"
#include "troika/device/opencl/programs.h"

namespace troika::device::opencl {

// A processor's cores: vectors of 8, weights as the file has them, no local memory. A GPU: packed
// weights, work-groups that share local memory.
enum class DeviceClass { kHost, kGpu };

// Products of few rows: outputs and rows of a work-group, and its size.
struct FewShape {
  int outputs = 4;
  int rows = 1;
  int group = 128;

  bool operator==(const FewShape&) const = default;
};

// Products of many rows: the tile of a work-group and of a work-item in it.
struct ManyShape {
  int tile_m = 64;
  int tile_n = 64;
  int item_m = 4;
  int item_n = 4;

  int group() const { return (tile_m / item_m) * (tile_n / item_n); }
  bool operator==(const ManyShape&) const = default;
};

// The tiles of one weight type; a Tuner finds better ones.
struct TileChoice {
  FewShape one{8, 1, 128};
  FewShape one_gated{4, 1, 128};
  FewShape few{4, 4, 128};
  ManyShape many{128, 128, 8, 8};
};

// Of the same inputs and weight type in one launch.
constexpr size_t kMostProducts = 3;
// Products of more rows than this go through local memory.
constexpr int64_t kMostFewRows = 32;

// One device's kernels. One thread at a time.
class KernelSet {
 public:
  KernelSet(DeviceClass device_class, Programs& programs)
      : class_(device_class), programs_(programs) {}

  DeviceClass device_class() const { return class_; }

  // kHost: rows that one work-item computes.
  static int host_rows(int64_t rows) { return rows == 1 ? 1 : 4; }
  FewShape few_shape(model::TensorType type, int64_t rows, bool gated) const;
  ManyShape many_shape(model::TensorType type, int64_t rows, int64_t outputs) const;
  void set_tiles(model::TensorType type, const TileChoice& choice) { tiles_[type] = choice; }

  Result<cl_kernel> host_product(model::TensorType type, int rows);
  Result<cl_kernel> few_product(model::TensorType type, const FewShape& shape, bool gated);
  Result<cl_kernel> many_product(model::TensorType type, const ManyShape& shape);
  Result<cl_kernel> embed(model::TensorType type);
  Result<cl_kernel> attention(int64_t head_dim, KvType kv);
  // Of kernels/rows.cl.
  Result<cl_kernel> row_kernel(const char* name, KvType kv = KvType::kF32);

 private:
  DeviceClass class_;
  Programs& programs_;
  std::map<model::TensorType, TileChoice> tiles_;  // what differs from the default
};

}  // namespace troika::device::opencl
