// The tuner's part for products through matrix units: a shape is only used where its results are
// those of the other kernels.
#include <algorithm>
#include <sstream>

#include "troika/device/opencl/trial.h"
#include "troika/device/opencl/tuner.h"

namespace troika::device::opencl {
namespace {

constexpr model::TensorType kType = model::TensorType::kQ4_0;
// So many that a pause of the host does not decide.
constexpr int kLaunches = 64;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Status Tuner::tune_one(const KernelSet::OneProduct& product) {
  if (kernels_.one_shape(product)) return {};
  const std::vector<OneShape> shapes = one_shapes(product.inputs, session_.facts.local_bytes);
  if (shapes.empty()) return {};
  const std::string name = fmt::format("one row {} {} {} {}", product.outputs, product.inputs,
                                       int{product.gated}, int{product.gain});
  OneShape kept;
  std::istringstream text(kept_text(name));
  if (text >> kept.warps >> kept.groups >> kept.ahead && is_among(shapes, kept)) {
    kernels_.set_one_shape(product, kept);
    return {};
  }
  Trial trial(session_);
  const int64_t outputs = product.outputs / (product.gated ? 2 : 1);
  RETURN_IF_ERROR(trial.prepare(kType, outputs, product.inputs, true));
  RETURN_IF_ERROR(trial.randomize());
  const cl_command_queue queue = session_.queue.get();
  const auto task = [&](int i) {
    ProductTask one = trial.task(kType, 1, i, product.gated);
    return product.gain ? trial.normed(one) : one;
  };
  const auto few = [&](int i) {
    return launch_few(queue, kernels_, kernels_.few_shape(kType, 1, product.gated), task(i));
  };
  double least = kNever;
  OneShape best;
  for (const OneShape& shape : shapes) {
    // With arguments that are set already, as in a pass: setting them takes as long as some of them
    // run.
    Launches launches;
    const auto launch_it = [&](int i) {
      if (i == 0) launches.begin(0);
      ProductTask one = task(i);
      one.launches = &launches;
      return launch_one(queue, kernels_, shape, one);
    };
    const double seconds = trial.time(kLaunches, launch_it);
    if (seconds >= least || !trial.agree(outputs, launch_it, few)) continue;
    least = seconds;
    best = shape;
  }
  // A device whose compiler refuses them all, or computes something else, has its other kernels.
  if (least == kNever) return {};
  keep(name, fmt::format("{} {} {}\n", best.warps, best.groups, best.ahead));
  kernels_.set_one_shape(product, best);
  return {};
}

Status Tuner::tune_rows(const KernelSet::OneProduct& product, int64_t rows) {
  if (std::find(rows_done_.begin(), rows_done_.end(), std::pair(product, rows)) !=
      rows_done_.end()) {
    return {};
  }
  rows_done_.emplace_back(product, rows);
  std::vector<RowsShape> shapes = rows_shapes(rows);
  const std::string name = fmt::format("{} rows {} {}", rows, product.outputs, product.inputs);
  RowsShape kept;
  std::istringstream text(kept_text(name));
  if (text >> kept.rows >> kept.warps) {
    // No warps: the other kernels are faster, or right.
    if (is_among(shapes, kept)) kernels_.set_rows_shape(product, kept);
    if (is_among(shapes, kept) || kept.warps == 0) return {};
  }
  Trial trial(session_);
  RETURN_IF_ERROR(trial.prepare(kType, product.outputs, product.inputs, true));
  RETURN_IF_ERROR(trial.randomize());
  const cl_command_queue queue = session_.queue.get();
  ASSIGN_OR_RETURN(const Place limbs, trial.room(limb_floats(rows, product.inputs)));
  const auto other = [&](int i) {
    const ProductTask task = trial.task(kType, rows, i, false);
    return rows <= kMostFewRows
               ? launch_few(queue, kernels_, kernels_.few_shape(kType, rows, false), task)
               : launch_many(queue, kernels_, kernels_.many_shape(kType, rows, product.outputs),
                             task);
  };
  // An emulation only has to be right.
  const bool timed = !kernels_.emulates_units();
  if (!timed) shapes.resize(1);
  double least = timed ? trial.time(kLaunches, other) : kNever;
  RowsShape best{static_cast<int>(rows), 0};
  for (const RowsShape& shape : shapes) {
    const auto launch_it = [&](int i) {
      return launch_rows(queue, kernels_, shape, trial.task(kType, rows, i, false), limbs);
    };
    const double seconds = timed ? trial.time(kLaunches, launch_it) : 0;
    if (seconds >= least || !trial.agree(rows * product.outputs, launch_it, other)) continue;
    least = seconds;
    best = shape;
  }
  if (best.warps > 0) kernels_.set_rows_shape(product, best);
  keep(name, fmt::format("{} {}\n", best.rows, best.warps));
  return {};
}

}  // namespace troika::device::opencl
