// Starts products of given tile sizes: for the device, its tuner and benchmarks alike.
#pragma once

#include <optional>
#include <vector>

#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/stream.h"
#include "troika/device/opencl/weights.h"

namespace troika::device::opencl {

// A tensor as kernels see it, in floats.
struct View {
  cl_mem buffer = nullptr;
  uint64_t begin = 0;
  int64_t stride = 0;
};

// Keys and values of a layer from a head on, in elements of the cache's type.
struct KvPlaces {
  KvType type = KvType::kF32;
  cl_mem buffer = nullptr;
  uint64_t first = 0;
  uint64_t head_step = 0;
  uint64_t values = 0;  // from keys to values of a head
};

// What one row of q, k and v becomes in the launch that makes them: queries and keys are rotated,
// pairs of neighbours each, and keys and values written.
struct KvTarget {
  KvPlaces kv;
  View table;        // of the angles
  Place batch;       // and there
  int64_t cell = 0;  // the number that says where in the cache
  int64_t head_dim = 0;
  int64_t rope_dim = 0;
};

struct ProductOut {
  const DeviceWeight* weight = nullptr;
  View y;
};

// What the product kernels of GPUs take.
struct ProductTask {
  model::TensorType type = model::TensorType::kF32;
  View x;
  std::vector<ProductOut> outs;  // up to kMostProducts; launch_many() takes one
  bool gated = false;            // few: the first y gets silu(first) * second
  bool has_add = false;
  View add;
  const DeviceWeight* gain = nullptr;  // few: of the norm before
  float eps = 0;
  std::optional<KvTarget> kv;  // launch_one(): of three outs, of which the first is rotated queries
  int64_t rows = 0;
  Launches* launches = nullptr;

  KernelSet::OneProduct one_product() const {
    KernelSet::OneProduct product{0, outs[0].weight->k, gated, gain != nullptr};
    for (const ProductOut& out : outs) product.outputs += out.weight->n;
    return product;
  }
  // All outs are in one order.
  bool is_tiled() const { return outs[0].weight->tiled; }
};

Status launch_few(cl_command_queue queue, KernelSet& kernels, const FewShape& shape,
                  const ProductTask& task);
// Whether rows of x can be read four floats at a time.
bool is_aligned(const View& x);
// One row by the matrix units of the device; weights in tiles, an aligned input.
Status launch_one(cl_command_queue queue, KernelSet& kernels, const OneShape& shape,
                  const ProductTask& task);
// Up to shape.rows rows by the matrix units; `scratch` has room for limb_floats() of them. Two
// launches.
Status launch_rows(cl_command_queue queue, KernelSet& kernels, const RowsShape& shape,
                   const ProductTask& task, const Place& scratch);
int64_t limb_floats(int64_t rows, int64_t inputs);
// Shapes to choose from for so many rows, the likely best first.
std::vector<RowsShape> rows_shapes(int64_t rows);
// Shapes that fit products of one row with so many inputs, the likely best first; none if no shape
// does, or the inputs do not fit into so much local memory.
std::vector<OneShape> one_shapes(int64_t inputs, int64_t local_bytes);
Status launch_many(cl_command_queue queue, KernelSet& kernels, const ManyShape& shape,
                   const ProductTask& task);
// On a processor's cores; one output.
Status launch_host(cl_command_queue queue, KernelSet& kernels, const ProductTask& task);

}  // namespace troika::device::opencl
