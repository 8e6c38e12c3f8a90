#include "troika/device/opencl/product_launch.h"

#include <algorithm>

namespace troika::device::opencl {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void add_view(Arguments& arguments, const View& view) {
  arguments.buffer(view.buffer).place(view.begin).count(view.stride);
}

// A kernel that adds nothing still wants a buffer.
void add_residual(Arguments& arguments, const ProductTask& task) {
  add_view(arguments, task.has_add ? task.add : task.x);
  arguments.flag(task.has_add);
}

// Whether all weights lie in one buffer, and all else in that of `x`: then the kernel is given no
// other ones.
bool lies_together(const ProductTask& task, cl_mem x) {
  const cl_mem weights = task.outs[0].weight->buffer();
  bool together = !task.has_add || task.add.buffer == x;
  for (const ProductOut& out : task.outs) {
    together = together && out.weight->buffer() == weights && out.y.buffer == x;
  }
  if (task.gain != nullptr) together = together && task.gain->buffer() == weights;
  if (task.kv) {
    together = together && task.kv->table.buffer == x && task.kv->batch.buffer == x;
  }
  return together;
}

// Up to kMostProducts matrices of the same inputs, and what is added.
void add_matrices(Arguments& arguments, const ProductTask& task, bool together) {
  cl_uint4 strides{};
  for (size_t i = 0; i < kMostProducts; ++i) {
    const bool used = i < task.outs.size();
    const ProductOut& out = task.outs[used ? i : 0];
    const View& y = task.gated ? task.outs[0].y : out.y;
    arguments.buffer(together && i > 0 ? nullptr : out.weight->buffer())
        .place(static_cast<uint64_t>(out.weight->begin))
        .place(static_cast<uint64_t>(out.weight->scales));
    arguments.buffer(together ? nullptr : y.buffer).place(y.begin).count(used ? out.weight->n : 0);
    strides.s[i] = static_cast<cl_uint>(y.stride);
  }
  arguments.value(strides);
  const View& add = task.has_add ? task.add : task.outs[0].y;
  arguments.buffer(together ? nullptr : add.buffer).place(add.begin).count(add.stride);
  arguments.flag(task.has_add);
}

void add_gain(Arguments& arguments, const ProductTask& task, bool together) {
  const bool has_gain = task.gain != nullptr;
  const DeviceWeight& gain = has_gain ? *task.gain : *task.outs[0].weight;
  arguments.buffer(together ? nullptr : gain.buffer())
      .place(static_cast<uint64_t>(gain.begin) / sizeof(float))
      .value(static_cast<cl_float>(task.eps))
      .flag(has_gain);
}

// Keys and values have a buffer of their own where there are many.
void add_kv(Arguments& arguments, const KvTarget& target, bool together) {
  arguments.buffer(together ? nullptr : target.table.buffer).place(target.table.begin);
  arguments.buffer(target.kv.buffer)
      .place(target.kv.first)
      .place(target.kv.head_step)
      .place(target.kv.values);
  arguments.buffer(together ? nullptr : target.batch.buffer)
      .place(target.batch.floats() + static_cast<uint64_t>(target.cell));
  arguments.count(target.head_dim).count(target.rope_dim);
}

// The arguments of product_few and product_one.
Arguments side_by_side(cl_kernel kernel, const ProductTask& task, bool together) {
  Arguments arguments(kernel, task.launches);
  add_view(arguments, task.x);
  add_matrices(arguments, task, together);
  add_gain(arguments, task, together);
  arguments.count(task.outs[0].weight->k).count(task.rows).flag(is_aligned(task.x));
  if (task.kv) add_kv(arguments, *task.kv, together);
  return arguments;
}

// As product_one.cl has them.
constexpr int64_t kTileOutputs = 16;
constexpr int64_t kStepInputs = 128;
constexpr OneShape kOneShapes[] = {{16, 1, 2}, {8, 2, 4},  {8, 3, 2},  {4, 4, 4}, {16, 2, 1},
                                   {14, 1, 2}, {14, 1, 4}, {14, 2, 1}, {28, 1, 1}};
// As kernels/limbs.cl has it. The scales of rows lie before the limbs, which begin on a vector.
constexpr int64_t kLimbGroup = 256;
constexpr int64_t kLimbs = 3;
constexpr int64_t kScaleFloats = 64;

}  // namespace

bool is_aligned(const View& x) { return x.begin % 4 == 0 && x.stride % 4 == 0; }

Status launch_host(cl_command_queue queue, KernelSet& kernels, const ProductTask& task) {
  const DeviceWeight& weight = *task.outs[0].weight;
  const HostShape shape = KernelSet::host_shape(task.type, task.rows);
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels.host_product(task.type, shape));
  Arguments arguments(kernel, task.launches);
  add_view(arguments, task.x);
  arguments.buffer(weight.buffer())
      .place(static_cast<uint64_t>(weight.begin))
      .place(static_cast<uint64_t>(weight.row_stride));
  add_view(arguments, task.outs[0].y);
  add_residual(arguments, task);
  arguments.count(weight.n).count(weight.k).count(task.rows);
  LaunchSize size;
  size.global = {static_cast<size_t>(ceil_div(weight.n, kHostGroup * shape.outputs) * kHostGroup),
                 static_cast<size_t>(ceil_div(task.rows, shape.rows))};
  size.local = {static_cast<size_t>(kHostGroup), 1};
  return launch(queue, arguments, size);
}

Status launch_many(cl_command_queue queue, KernelSet& kernels, const ManyShape& shape,
                   const ProductTask& task) {
  const DeviceWeight& weight = *task.outs[0].weight;
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels.many_product(task.type, shape, task.is_tiled()));
  Arguments arguments(kernel, task.launches);
  add_view(arguments, task.x);
  arguments.buffer(weight.buffer())
      .place(static_cast<uint64_t>(weight.begin))
      .place(static_cast<uint64_t>(weight.scales));
  add_view(arguments, task.outs[0].y);
  add_residual(arguments, task);
  arguments.count(weight.n).count(weight.k).count(task.rows).flag(is_aligned(task.x));
  LaunchSize size;
  size.global = {static_cast<size_t>(ceil_div(weight.n, shape.tile_n) * shape.group()),
                 static_cast<size_t>(ceil_div(task.rows, shape.tile_m))};
  size.local = {static_cast<size_t>(shape.group()), 1};
  return launch(queue, arguments, size);
}

Status launch_few(cl_command_queue queue, KernelSet& kernels, const FewShape& shape,
                  const ProductTask& task) {
  const bool together = lies_together(task, task.x.buffer);
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels.few_product(task.type, shape, task.gated, task.is_tiled(), together));
  int64_t groups = 0;
  for (const ProductOut& out : task.outs) {
    groups += ceil_div(out.weight->n, shape.outputs);
    if (task.gated) break;
  }
  LaunchSize size;
  size.global = {static_cast<size_t>(groups * shape.group),
                 static_cast<size_t>(ceil_div(task.rows, shape.rows))};
  size.local = {static_cast<size_t>(shape.group), 1};
  return launch(queue, side_by_side(kernel, task, together), size);
}

Status launch_one(cl_command_queue queue, KernelSet& kernels, const OneShape& shape,
                  const ProductTask& task) {
  const bool together = lies_together(task, task.x.buffer);
  ASSIGN_OR_RETURN(
      const cl_kernel kernel,
      kernels.one_product(task.outs[0].weight->k, shape, task.gated, task.gain != nullptr,
                          task.kv ? std::optional(task.kv->kv.type) : std::nullopt, together));
  int64_t tiles = 0;
  for (const ProductOut& out : task.outs) {
    tiles += out.weight->n / kTileOutputs;
    if (task.gated) break;
  }
  const int64_t groups = std::min(tiles, kernels.compute_units() * shape.groups);
  LaunchSize size;
  size.global = {static_cast<size_t>(groups * shape.group()), 1};
  size.local = {static_cast<size_t>(shape.group()), 1};
  return launch(queue, side_by_side(kernel, task, together), size);
}

int64_t limb_floats(int64_t rows, int64_t inputs) {
  return kScaleFloats + kLimbs * rows * inputs / static_cast<int64_t>(sizeof(float));
}

Status launch_rows(cl_command_queue queue, KernelSet& kernels, const RowsShape& shape,
                   const ProductTask& task, const Place& scratch) {
  const int64_t inputs = task.outs[0].weight->k;
  const uint64_t limbs_begin = kScaleFloats * sizeof(float);
  ASSIGN_OR_RETURN(const cl_kernel limbs, kernels.limbs());
  Arguments before(limbs, task.launches);
  add_view(before, task.x);
  add_gain(before, task, false);
  before.count(inputs).count(task.rows);
  before.buffer(scratch.buffer).place(scratch.floats()).place(limbs_begin);
  LaunchSize size;
  size.global = {static_cast<size_t>(shape.rows * kLimbGroup), 1};
  size.local = {static_cast<size_t>(kLimbGroup), 1};
  RETURN_IF_ERROR(launch(queue, before, size));
  const bool together = lies_together(task, scratch.buffer);
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels.rows_product(inputs, shape, together));
  Arguments arguments(kernel, task.launches);
  arguments.buffer(scratch.buffer).place(scratch.floats()).place(limbs_begin);
  add_matrices(arguments, task, together);
  arguments.count(task.rows);
  int64_t tiles = 0;
  for (const ProductOut& out : task.outs) tiles += out.weight->n / kTileOutputs;
  size.global = {static_cast<size_t>(ceil_div(tiles, shape.warps) * shape.group()), 1};
  size.local = {static_cast<size_t>(shape.group()), 1};
  return launch(queue, arguments, size);
}

std::vector<RowsShape> rows_shapes(int64_t rows) {
  const int most = static_cast<int>(rows);
  return {{most, 4}, {most, 2}, {most, 8}};
}

std::vector<OneShape> one_shapes(int64_t inputs, int64_t local_bytes) {
  const int64_t steps = inputs / kStepInputs;
  std::vector<OneShape> shapes;
  for (const OneShape& shape : kOneShapes) {
    const int64_t local = 3 * (inputs + 16) + 4 * (steps + shape.warps * (1 + 2 * kTileOutputs));
    if (steps % (shape.warps * shape.ahead) == 0 && local <= local_bytes) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace troika::device::opencl
