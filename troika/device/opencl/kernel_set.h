// Which kernel with which tile sizes computes what, on which class of device.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

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

// Products of one row through matrix units: warps of a work-group, work-groups on a compute unit,
// and steps that are loaded before they are used.
struct OneShape {
  int warps = 8;
  int groups = 2;
  int ahead = 1;

  int group() const { return warps * 32; }
  bool operator==(const OneShape&) const = default;
};

// Products of some rows through matrix units: the most rows, and warps of a work-group, each with
// 16 outputs.
struct RowsShape {
  int rows = 8;
  int warps = 4;

  int group() const { return warps * 32; }
  bool operator==(const RowsShape&) const = default;
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

// product_host.cl: what a work-item computes.
struct HostShape {
  int outputs = 1;
  int rows = 1;
};

// Of the same inputs and weight type in one launch.
constexpr size_t kMostProducts = 3;
// Query heads of a KV head that attention_few.cl takes.
constexpr int64_t kMostQueries = 8;
// Products of more rows than this go through local memory, or through matrix units.
constexpr int64_t kMostFewRows = 16;
constexpr int64_t kMostUnitRows = 32;

// Work-items of a group where each does little; outputs of a group of a processor's products: one
// after the other, few enough to share out.
constexpr int64_t kItemGroup = 64;
constexpr int64_t kHostGroup = 16;

// One device's kernels. One thread at a time.
class KernelSet {
 public:
  KernelSet(DeviceClass device_class, Programs& programs)
      : class_(device_class), programs_(programs) {}

  DeviceClass device_class() const { return class_; }

  static HostShape host_shape(model::TensorType type, int64_t rows);
  FewShape few_shape(model::TensorType type, int64_t rows, bool gated) const;
  ManyShape many_shape(model::TensorType type, int64_t rows, int64_t outputs) const;
  void set_tiles(model::TensorType type, const TileChoice& choice) { tiles_[type] = choice; }

  // What products of one row through matrix units look like to their tuner.
  struct OneProduct {
    int64_t outputs = 0;  // of all matrices side by side
    int64_t inputs = 0;
    bool gated = false;
    bool gain = false;  // with a norm before it

    auto operator<=>(const OneProduct&) const = default;
  };
  // nullopt until it was set: the device has no such units, or nothing fits.
  std::optional<OneShape> one_shape(const OneProduct& product) const;
  void set_one_shape(const OneProduct& product, const OneShape& shape) { ones_[product] = shape; }
  // The same for products of `rows` rows; of some more rows than there are, if need be.
  std::optional<RowsShape> rows_shape(const OneProduct& product, int64_t rows) const;
  void set_rows_shape(const OneProduct& product, const RowsShape& shape) {
    units_[{product, shape.rows}] = shape;
  }
  // The compiler takes PTX.
  void use_ptx() { ptx_ = true; }
  // For tests: matrix units are emulated, and what else needs PTX.
  void emulate_units() { emulate_ = true; }
  bool emulates_units() const { return emulate_; }
  void set_compute_units(int64_t units) { compute_units_ = units; }
  int64_t compute_units() const { return compute_units_; }

  Result<cl_kernel> host_product(model::TensorType type, const HostShape& shape);
  // `tiled`: the order of the weights (weights.h). `together`: all weights in one buffer and all
  // else in one, so that no others are given (kernels/product_few.cl).
  Result<cl_kernel> few_product(model::TensorType type, const FewShape& shape, bool gated,
                                bool tiled, bool together);
  Result<cl_kernel> many_product(model::TensorType type, const ManyShape& shape, bool tiled);
  // `gain`: with a norm before it; `kv`: its outputs are rotated and written to such a cache.
  Result<cl_kernel> one_product(int64_t inputs, const OneShape& shape, bool gated, bool gain,
                                std::optional<KvType> kv, bool together);
  Result<cl_kernel> rows_product(int64_t inputs, const RowsShape& shape, bool together);
  Result<cl_kernel> limbs();
  Result<cl_kernel> embed(model::TensorType type, bool tiled);
  Result<cl_kernel> attention(int64_t head_dim, KvType kv);
  Result<cl_kernel> join_splits(int64_t head_dim, KvType kv);  // kGpu
  // Attention of few rows, `queries` heads to a KV head; nullptr if the device has no such kernel.
  cl_kernel attention_few(int64_t head_dim, KvType kv, int64_t queries, bool together);
  // Of kernels/rows.cl.
  Result<cl_kernel> row_kernel(const char* name, KvType kv = KvType::kF32);

 private:
  ProgramText attention_program(int64_t head_dim, KvType kv) const;
  // Of a kernel that is started for every layer of a token: its name is not put together each time.
  using Traits = std::array<int64_t, 9>;
  template <class Make>
  Result<cl_kernel> kept(const Traits& traits, const Make& make) {
    const auto found = kept_.find(traits);
    if (found != kept_.end()) return found->second;
    ASSIGN_OR_RETURN(const cl_kernel made, make());
    return kept_[traits] = made;
  }

  DeviceClass class_;
  Programs& programs_;
  std::map<model::TensorType, TileChoice> tiles_;  // what differs from the default
  std::map<OneProduct, OneShape> ones_;
  std::map<std::pair<OneProduct, int>, RowsShape> units_;
  bool emulate_ = false;
  bool ptx_ = false;
  int64_t compute_units_ = 1;
  std::map<Traits, cl_kernel> kept_;
};

}  // namespace troika::device::opencl
