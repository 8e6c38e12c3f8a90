#include "troika/device/opencl/device.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "troika/device/result_check.h"

namespace troika::device::opencl {
namespace {

using graph::Op;
using graph::OpKind;

// Private sums of a head in kernels/attention.cl, and work-items that share one there.
constexpr int64_t kLargestHeadHost = 1024;
constexpr int64_t kLargestHeadGpu = 256;
// Of tasks that nobody waits for, the driver is told to begin each of the first ones, while the
// device has nothing to do, and then every so many: each time costs a microsecond.
constexpr size_t kTasksOfFlush = 8;

std::vector<float> rope_table(const graph::Graph& graph, std::span<const int32_t> positions) {
  std::vector<float> table;
  table.reserve(positions.size() * graph.rope_inv_freq.size() * 2);
  for (const int32_t position : positions) {
    for (const double inv_freq : graph.rope_inv_freq) {
      const double angle = static_cast<double>(position) * inv_freq;
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

WeightHome weight_home(const Session& session) {
  if (session.device_class == DeviceClass::kGpu) return WeightHome::kOwnPacked;
  return session.own_memory ? WeightHome::kOwn : WeightHome::kShared;
}

}  // namespace

OpenClDevice::OpenClDevice(DeviceInfo info, Session session, const std::string& cache_dir,
                           const Clock& clock)
    : clock_(clock),
      info_(std::move(info)),
      session_(std::move(session)),
      programs_(session_.context.get(), session_.facts, cache_dir, session_.broken_kernel),
      kernels_(session_.device_class, programs_),
      buildable_(kernels_),
      tuner_(session_, kernels_, cache_dir),
      arena_(session_.context.get(), session_.facts.largest_buffer),
      weights_(session_.context.get(), session_.queue.get(), weight_home(session_), arena_),
      mirrors_(session_.context.get(), session_.queue.get(), session_.own_memory, arena_),
      scratch_(arena_),
      batch_data_(arena_, session_.queue.get()),
      queue_(
          info_.name, info_.cores, clock,
          [this](const Kernel& kernel, const Bindings& bindings) {
            return begin(static_cast<const OpenClKernel&>(kernel), bindings);
          },
          [this](const Kernel& kernel, const Bindings& bindings, TaskTimes& times) {
            return finish(static_cast<const OpenClKernel&>(kernel), bindings, times);
          }) {
  kernels_.set_compute_units(session_.facts.units);
  if (session_.facts.matrix_units) kernels_.use_ptx();
  if (session_.tile_weights && !session_.facts.matrix_units) kernels_.emulate_units();
}

OpenClDevice::~OpenClDevice() { api().Finish(session_.queue.get()); }

bool OpenClDevice::supports(const graph::Graph& graph, graph::OpId id) const {
  const Op& op = graph.op(id);
  const bool reads = op.kind != OpKind::kEmbed && op.kind != OpKind::kMatMul;
  if (!reads && !can_read(op.weight->type)) return false;
  if (op.kind == OpKind::kRmsNorm && op.weight->type != model::TensorType::kF32) return false;
  const int64_t largest_head =
      session_.device_class == DeviceClass::kHost ? kLargestHeadHost : kLargestHeadGpu;
  if (op.kind == OpKind::kAttention && op.heads.head_dim > largest_head) return false;
  std::string refused;
  const bool builds = buildable_.builds(op, &refused);
  if (!refused.empty()) info_.facts.emplace_back("not computed", refused);
  return builds;
}

DeviceStats OpenClDevice::stats() const {
  DeviceStats stats = queue_.stats();
  stats.copies = copies_;
  stats.copy_bytes = copy_bytes_;
  stats.own_bytes = weight_bytes_ + mirror_bytes_;
  return stats;
}

void OpenClDevice::note_stats() {
  copies_ = mirrors_.copies();
  copy_bytes_ = mirrors_.copy_bytes();
  mirror_bytes_ = mirrors_.own_bytes();
}

Result<std::unique_ptr<Kernel>> OpenClDevice::compile(const Program& program) {
  RETURN_IF_ERROR(queue_.drain());  // tasks look kernels and weights up
  try {
    auto kernel = make_kernel(program);
    if (!kernel) {
      return make_error(kernel.error().code, "device {}: {}", info_.name, kernel.error().message);
    }
    weight_bytes_ = weights_.own_bytes();
    return kernel;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kOutOfMemory, "device {}: not enough memory to prepare weights",
                      info_.name);
  }
}

Result<std::unique_ptr<Kernel>> OpenClDevice::make_kernel(const Program& program) {
  auto kernel = std::make_unique<OpenClKernel>();
  kernel->program = program;
  kernel->steps = make_steps(kernel->program);
  kernel->crossings = find_crossings(kernel->program);
  for (Step& step : kernel->steps) {
    RETURN_IF_ERROR(set_weights(step));
    RETURN_IF_ERROR(warm(step, program.max_rows));
  }
  return kernel;
}

Status OpenClDevice::set_weights(Step& step) {
  const auto whole = [&](const Op& op) {
    const graph::WeightSlice slice{op.weight, 0, op.weight->rows, 0, op.weight->cols};
    return weights_.get(slice, tiles_weights() && can_tile(slice) ? Order::kTiles : Order::kRows);
  };
  if (step.norm != nullptr) {
    ASSIGN_OR_RETURN(step.weight, whole(*step.norm));
  }
  if (step.kind == StepKind::kOther &&
      (step.op->kind == OpKind::kEmbed || step.op->kind == OpKind::kRmsNorm)) {
    ASSIGN_OR_RETURN(step.weight, whole(*step.op));
  }
  const bool tile = tiles_weights() &&
                    std::all_of(step.products.begin(), step.products.end(),
                                [](const Product& product) { return can_tile(product.slice); });
  for (Product& product : step.products) {
    ASSIGN_OR_RETURN(product.weight,
                     weights_.get(product.slice, tile ? Order::kTiles : Order::kRows));
  }
  return {};
}

bool OpenClDevice::tiles_weights() const {
  return session_.device_class == DeviceClass::kGpu &&
         (session_.facts.matrix_units || session_.tile_weights);
}

// In double on the host: single precision is not enough for the angles of later tokens, and not
// every GPU has double.
Status OpenClDevice::put_rope_table(const Step& step, const OpenClKernel& kernel,
                                    const Bindings& bindings, Begun& begun) {
  const graph::Graph& graph = *kernel.program.graph;
  const TensorView& view = bindings.tensors[static_cast<size_t>(step.output)];
  ASSIGN_OR_RETURN(const Place place, mirrors_.find(view.data));
  begun.angles =
      std::make_shared<const std::vector<float>>(rope_table(graph, bindings.batch->positions));
  const size_t width = graph.rope_inv_freq.size() * 2;
  const auto stride = static_cast<size_t>(view.row_stride);
  for (size_t row = 0; row < bindings.batch->positions.size(); ++row) {
    RETURN_IF_ERROR(check_call(
        "clEnqueueWriteBuffer",
        api().EnqueueWriteBuffer(session_.queue.get(), place.buffer, CL_FALSE,
                                 static_cast<size_t>(place.offset) + row * stride,
                                 width * sizeof(float), begun.angles->data() + row * width, 0,
                                 nullptr, nullptr)));
  }
  return {};
}

Status OpenClDevice::mark(EventHandle& event) {
  cl_event marker = nullptr;
  RETURN_IF_ERROR(
      check_call("clEnqueueMarkerWithWaitList",
                 api().EnqueueMarkerWithWaitList(session_.queue.get(), 0, nullptr, &marker)));
  event = EventHandle(marker);
  return check_call("clFlush", api().Flush(session_.queue.get()));
}

Status OpenClDevice::begin(const OpenClKernel& kernel, const Bindings& bindings) {
  mirrors_.refresh();
  Begun& begun = begun_.emplace_back();
  const auto start = [&]() -> Status {
    if (session_.profiled) RETURN_IF_ERROR(mark(begun.first));
    // A driver may read what is to be copied in at once, though the queue has not come to it; what
    // an earlier task copies out to the same place must be there by then.
    if (session_.own_memory && !kernel.crossings.sole_device && begun_.size() > 1) {
      RETURN_IF_ERROR(check_call("clFinish", api().Finish(session_.queue.get())));
    }
    RETURN_IF_ERROR(batch_data_.put(*bindings.batch));
    begun.batch = batch_data_.source();
    TaskCopies copies(mirrors_, session_.queue.get(), kernel.crossings, kernel.program, bindings);
    RETURN_IF_ERROR(copies.before());
    StepRunner runner(session_.queue.get(), kernels_, mirrors_, scratch_, batch_data_,
                      kernel.program, bindings);
    for (const Step& step : kernel.steps) {
      if (step.op->kind == OpKind::kRopeTable) {
        RETURN_IF_ERROR(put_rope_table(step, kernel, bindings, begun));
      } else {
        RETURN_IF_ERROR(runner.run(step));
      }
    }
    const Status copied = copies.after();
    begun.landing = mirrors_.landing().take();
    RETURN_IF_ERROR(copied);
    // What stays on the device is done when what follows it is.
    if (kernel.crossings.sole_device && kernel.crossings.outputs.empty() && !session_.profiled) {
      const size_t ahead = begun_.size();
      if (ahead > kTasksOfFlush && ahead % kTasksOfFlush != 0) return {};
      return check_call("clFlush", api().Flush(session_.queue.get()));
    }
    return mark(begun.done);
  };
  Status started = start();
  if (started) return {};
  api().Finish(session_.queue.get());  // nothing of it may run on
  mirrors_.landing().drop(begun.landing);
  begun_.pop_back();
  return make_error(started.error().code, "device {}: {}", info_.name, started.error().message);
}

// A driver that does not tell leaves them as they are.
void OpenClDevice::tell_times(const Begun& begun, TaskTimes& times) {
  if (!begun.first) return;
  const auto end_of = [](const EventHandle& event, cl_ulong& time) {
    return api().GetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof time, &time,
                                       nullptr) == CL_SUCCESS &&
           time != 0;
  };
  cl_ulong first = 0;
  cl_ulong done = 0;
  const TimePoint seen = clock_.now();
  if (!end_of(begun.first, first) || !end_of(begun.done, done)) return;
  device_clock_.note(done, seen);
  times.start = device_clock_.at(first);
  times.end = device_clock_.at(done);
}

// Also of those behind it that have no event, up to one that has.
Status OpenClDevice::wait_for_first() {
  auto marked =
      std::find_if(begun_.begin(), begun_.end(), [](const Begun& b) { return bool(b.done); });
  if (marked == begun_.end()) {
    marked = begun_.end() - 1;
    RETURN_IF_ERROR(mark(marked->done));
  }
  const cl_event event = marked->done.get();
  const cl_int code = api().WaitForEvents(1, &event);
  if (code != CL_SUCCESS) {
    return make_error(ErrorCode::kDeviceFailed, "a task failed: {}", error_name(code));
  }
  known_done_ = static_cast<size_t>(marked - begun_.begin()) + 1;
  return {};
}

Status OpenClDevice::finish(const OpenClKernel& kernel, const Bindings& bindings,
                            TaskTimes& times) {
  const Status done = known_done_ > 0 ? Status() : wait_for_first();
  tell_times(begun_.front(), times);
  Landing& landing = mirrors_.landing();
  done ? landing.land(begun_.front().landing) : landing.drop(begun_.front().landing);
  begun_.pop_front();
  if (!done) {
    return make_error(done.error().code, "device {}: {}", info_.name, done.error().message);
  }
  --known_done_;
  note_stats();
  if (kernel.crossings.sole_device && session_.own_memory && kernel.crossings.outputs.empty()) {
    return {};
  }
  return check_finite(info_.name, kernel.program, bindings);
}

}  // namespace troika::device::opencl
