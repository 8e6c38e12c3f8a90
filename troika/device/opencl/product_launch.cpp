#include "troika/device/opencl/product_launch.h"

#include <algorithm>

namespace troika::device::opencl {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether rows of x can be read four floats at a time.
bool is_aligned(const View& x) { return x.begin % 4 == 0 && x.stride % 4 == 0; }

void add_view(Arguments& arguments, const View& view) {
  arguments.buffer(view.buffer).place(view.begin).count(view.stride);
}

// A kernel that adds nothing still wants a buffer.
void add_residual(Arguments& arguments, const ProductTask& task) {
  add_view(arguments, task.has_add ? task.add : task.x);
  arguments.flag(task.has_add);
}

// Up to kMostProducts matrices of the same inputs, and what is added.
void add_matrices(Arguments& arguments, const ProductTask& task) {
  cl_uint4 strides{};
  for (size_t i = 0; i < kMostProducts; ++i) {
    const bool used = i < task.outs.size();
    const ProductOut& out = task.outs[used ? i : 0];
    const View& y = task.gated ? task.outs[0].y : out.y;
    arguments.buffer(out.weight->buffer.get()).place(static_cast<uint64_t>(out.weight->scales));
    arguments.buffer(y.buffer).place(y.begin).count(used ? out.weight->n : 0);
    strides.s[i] = static_cast<cl_uint>(y.stride);
  }
  arguments.value(strides);
  add_residual(arguments, task);
}

void add_gain(Arguments& arguments, const ProductTask& task) {
  const bool has_gain = task.gain != nullptr;
  arguments.buffer(has_gain ? task.gain->buffer.get() : task.x.buffer)
      .value(static_cast<cl_float>(task.eps))
      .flag(has_gain);
}

// The arguments of product_few and product_one.
Arguments side_by_side(cl_kernel kernel, const ProductTask& task) {
  Arguments arguments(kernel, task.launches);
  add_view(arguments, task.x);
  add_matrices(arguments, task);
  add_gain(arguments, task);
  arguments.count(task.outs[0].weight->k).count(task.rows).flag(is_aligned(task.x));
  return arguments;
}

// As product_one.cl has them.
constexpr int64_t kTileOutputs = 16;
constexpr int64_t kStepInputs = 128;
constexpr OneShape kOneShapes[] = {{8, 2, 2},  {16, 1, 2}, {16, 2, 1}, {8, 3, 1}, {4, 7, 1},
                                   {16, 1, 1}, {8, 4, 1},  {8, 2, 1},  {4, 4, 2}};
// As kernels/limbs.cl has it. The scales of rows lie before the limbs, which begin on a vector.
constexpr int64_t kLimbGroup = 256;
constexpr int64_t kLimbs = 3;
constexpr int64_t kScaleFloats = 64;

}  // namespace

Status launch_host(cl_command_queue queue, KernelSet& kernels, const ProductTask& task) {
  const DeviceWeight& weight = *task.outs[0].weight;
  const HostShape shape = KernelSet::host_shape(task.type, task.rows);
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels.host_product(task.type, shape));
  Arguments arguments(kernel, task.launches);
  add_view(arguments, task.x);
  arguments.buffer(weight.buffer.get())
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
  arguments.buffer(weight.buffer.get()).place(static_cast<uint64_t>(weight.scales));
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
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels.few_product(task.type, shape, task.gated, task.is_tiled()));
  int64_t groups = 0;
  for (const ProductOut& out : task.outs) {
    groups += ceil_div(out.weight->n, shape.outputs);
    if (task.gated) break;
  }
  LaunchSize size;
  size.global = {static_cast<size_t>(groups * shape.group),
                 static_cast<size_t>(ceil_div(task.rows, shape.rows))};
  size.local = {static_cast<size_t>(shape.group), 1};
  return launch(queue, side_by_side(kernel, task), size);
}

Status launch_one(cl_command_queue queue, KernelSet& kernels, const OneShape& shape,
                  const ProductTask& task) {
  ASSIGN_OR_RETURN(const cl_kernel kernel,
                   kernels.one_product(task.outs[0].weight->k, shape, task.gated));
  int64_t tiles = 0;
  for (const ProductOut& out : task.outs) {
    tiles += out.weight->n / kTileOutputs;
    if (task.gated) break;
  }
  const int64_t groups = std::min(tiles, kernels.compute_units() * shape.groups);
  LaunchSize size;
  size.global = {static_cast<size_t>(groups * shape.group()), 1};
  size.local = {static_cast<size_t>(shape.group()), 1};
  return launch(queue, side_by_side(kernel, task), size);
}

int64_t limb_floats(int64_t rows, int64_t inputs) {
  return kScaleFloats + kLimbs * rows * inputs / static_cast<int64_t>(sizeof(float));
}

Status launch_rows(cl_command_queue queue, KernelSet& kernels, const RowsShape& shape,
                   const ProductTask& task, cl_mem scratch) {
  const int64_t inputs = task.outs[0].weight->k;
  const uint64_t limbs_begin = kScaleFloats * sizeof(float);
  ASSIGN_OR_RETURN(const cl_kernel limbs, kernels.limbs());
  Arguments before(limbs, task.launches);
  add_view(before, task.x);
  add_gain(before, task);
  before.count(inputs).count(task.rows).buffer(scratch).place(limbs_begin);
  LaunchSize size;
  size.global = {static_cast<size_t>(shape.rows * kLimbGroup), 1};
  size.local = {static_cast<size_t>(kLimbGroup), 1};
  RETURN_IF_ERROR(launch(queue, before, size));
  ASSIGN_OR_RETURN(const cl_kernel kernel, kernels.rows_product(inputs, shape));
  Arguments arguments(kernel, task.launches);
  arguments.buffer(scratch).place(limbs_begin);
  add_matrices(arguments, task);
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
