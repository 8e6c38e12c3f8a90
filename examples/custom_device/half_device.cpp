#include "examples/custom_device/half_device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <new>
#include <system_error>
#include <utility>

#include "troika/device/cpu/aligned_floats.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/step.h"
#include "troika/device/device_type.h"
#include "troika/device/result_check.h"
#include "troika/device/work_queue.h"
#include "troika/model/quantize.h"

namespace troika::device::half {
namespace {

constexpr int64_t kStandardRows[] = {1, 32, 128, 512};
// Quantized weights come in blocks of so many; a cut along K must not split one.
constexpr int64_t kBlock = 32;

// A slice as the device keeps it: halves, [n][k].
struct HalfWeight {
  int64_t n = 0;
  int64_t k = 0;
  std::vector<uint16_t> values;

  int64_t bytes() const { return static_cast<int64_t>(values.size() * sizeof(uint16_t)); }
};

// A product, or a run of operators without products, which the cpu's steps compute.
struct Part {
  Program program;  // its operators alone
  std::shared_ptr<const HalfWeight> weight;
  std::vector<cpu::Step> steps;
};

struct HalfKernel final : Kernel {
  Program program;
  std::vector<Part> parts;
};

Result<HalfWeight> round_weight(const graph::WeightSlice& slice) {
  constexpr uint16_t kInfinity = 0x7c00;
  const model::Weight& weight = *slice.weight;
  HalfWeight rounded{slice.n, slice.k, {}};
  rounded.values.reserve(static_cast<size_t>(slice.n * slice.k));
  std::vector<float> row(static_cast<size_t>(slice.k));
  const int64_t offset = model::row_bytes(weight.type, slice.k_begin);
  for (int64_t n = slice.n_begin; n < slice.n_begin + slice.n; ++n) {
    model::dequantize_row(weight.type, weight.data + n * weight.row_bytes() + offset, row);
    for (const float value : row) {
      rounded.values.push_back(model::f32_to_f16(value));
      if ((rounded.values.back() & kInfinity) != kInfinity) continue;
      return make_error(ErrorCode::kUnsupported,
                        "weight {} holds {:g} in row {}, which FP16 cannot: compute it on a device "
                        "that is exact",
                        weight.name, value, n);
    }
  }
  return rounded;
}

// Eight sums side by side, so that a compiler may use vectors without reordering a sum.
float dot(const float* a, const float* b, int64_t k) {
  constexpr int64_t kLanes = 8;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < k; ++i) sums[i % kLanes] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

class HalfDevice final : public QueuedDevice {
 public:
  HalfDevice(DeviceInfo info, const Clock& clock)
      : info_(std::move(info)),
        queue_(info_.name, info_.cores, clock, [this](const Kernel& kernel, const Bindings& b) {
          return run(static_cast<const HalfKernel&>(kernel), b);
        }) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    RETURN_IF_ERROR(queue_.drain());  // scratch, which tasks share, may move
    const auto& lengths = info_.standard_rows;
    if (std::find(lengths.begin(), lengths.end(), program.max_rows) == lengths.end()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "device {} has no kernels for {} rows: its lengths are {}", info_.name,
                        program.max_rows, fmt::join(lengths, ", "));
    }
    try {
      return make_kernel(program);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kOutOfMemory,
                        "device {}: not enough memory for FP16 weights, {} bytes so far",
                        info_.name, stats().own_bytes);
    }
  }

  DeviceStats stats() const override {
    DeviceStats stats = queue_.stats();
    stats.own_bytes = scratch_.bytes() +
                      static_cast<int64_t>((inputs_.size() + weight_row_.size()) * sizeof(float));
    for (const auto& [slice, held] : weights_) {
      if (const auto weight = held.lock()) stats.own_bytes += weight->bytes();
    }
    return stats;
  }

 private:
  WorkQueue& queue() override { return queue_; }

  Result<std::unique_ptr<Kernel>> make_kernel(const Program& program) {
    auto kernel = std::make_unique<HalfKernel>();
    kernel->program = program;
    for (Program& piece : cpu::cut_at_products(program)) {
      Part& part = kernel->parts.emplace_back();
      part.program = std::move(piece);
      const graph::Op& op = program.graph->op(part.program.ops.front());
      if (op.kind != graph::OpKind::kMatMul) {
        part.steps = cpu::make_steps(part.program);
        scratch_.reserve(cpu::scratch_floats(part.steps, part.program, kernels_));
        continue;
      }
      const graph::WeightSlice slice = graph::weight_slice(*program.graph, op);
      ASSIGN_OR_RETURN(part.weight, held_weight(slice));
      part.program.outputs = {op.output};  // of the check after the product
      grow(inputs_, program.max_rows * slice.k);
      grow(weight_row_, slice.k);
    }
    return kernel;
  }

  template <class T>
  static void grow(std::vector<T>& vector, int64_t size) {
    vector.resize(std::max(vector.size(), static_cast<size_t>(size)));
  }

  // Kernels of all lengths share a slice; it goes with the last of them.
  Result<std::shared_ptr<const HalfWeight>> held_weight(const graph::WeightSlice& slice) {
    std::erase_if(weights_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<const HalfWeight>& held = weights_[slice];
    if (auto weight = held.lock()) return weight;
    ASSIGN_OR_RETURN(HalfWeight rounded, round_weight(slice));
    auto weight = std::make_shared<const HalfWeight>(std::move(rounded));
    held = weight;
    return weight;
  }

  // On the worker thread. An error loses the device.
  Status run(const HalfKernel& kernel, const Bindings& bindings) {
    for (const Part& part : kernel.parts) {
      if (part.weight == nullptr) {
        cpu::run_steps(part.steps, *part.program.graph, kernels_, bindings, scratch_.data());
        continue;
      }
      RETURN_IF_ERROR(run_product(part, bindings));
      // Now, for an attention may hide an infinite score.
      RETURN_IF_ERROR(check_finite(info_.name, part.program, bindings));
    }
    return check_finite(info_.name, kernel.program, bindings);
  }

  Status run_product(const Part& part, const Bindings& bindings) {
    const Program& program = part.program;
    const graph::Op& op = program.graph->op(program.ops.front());
    const graph::Tensor& output = program.graph->tensor(op.output);
    const RowRange rows = rows_written(op, output, *bindings.batch);
    if (rows.end > program.max_rows) {
      return make_error(ErrorCode::kInvalidArgument,
                        "device {}: a task of {} rows for a kernel of {} at most", info_.name,
                        rows.end, program.max_rows);
    }
    const HalfWeight& weight = *part.weight;
    load_inputs(view_of(program, bindings, op.inputs[0]), rows.end, program.max_rows, weight.k);
    const TensorView y = view_of(program, bindings, op.output);
    for (int64_t n = 0; n < weight.n; ++n) {
      const uint16_t* const halves = weight.values.data() + n * weight.k;
      std::transform(halves, halves + weight.k, weight_row_.begin(), model::f16_to_f32);
      // Padding too, as a graph of fixed shape does: there is memory for it.
      for (int64_t m = 0; m < program.max_rows; ++m) {
        auto* const row = reinterpret_cast<float*>(y.data + m * y.row_stride);
        row[n] = dot(inputs_.data() + m * weight.k, weight_row_.data(), weight.k);
      }
    }
    return {};
  }

  // Rounds `rows` rows of `k` values; what comes after them in shared memory may be anything, so
  // that padding is zeros of our own.
  void load_inputs(const TensorView& x, int64_t rows, int64_t max_rows, int64_t k) {
    for (int64_t m = 0; m < rows; ++m) {
      const auto* const from = reinterpret_cast<const float*>(x.data + m * x.row_stride);
      std::transform(from, from + k, inputs_.begin() + m * k,
                     [](float value) { return model::f16_to_f32(model::f32_to_f16(value)); });
    }
    std::fill_n(inputs_.begin() + rows * k, (max_rows - rows) * k, 0.0f);
  }

  static TensorView view_of(const Program& program, const Bindings& bindings,
                            graph::TensorId tensor) {
    return bindings.tensors[program.index_of(tensor)];
  }

  const DeviceInfo info_;
  const cpu::KernelTable& kernels_ = *cpu::available_kernels().front();
  std::map<graph::WeightSlice, std::weak_ptr<const HalfWeight>> weights_;
  cpu::AlignedFloats scratch_;  // of the cpu's steps
  std::vector<float> inputs_;   // of the running product, [max_rows][k]
  std::vector<float> weight_row_;
  WorkQueue queue_;  // last: its worker uses all of the above
};

DeviceInfo describe(const HalfOptions& options) {
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kNpu;
  info.description = "example: FP16 products in plain C++";
  info.cores = options.cores;
  info.threads = 1;
  info.version = "half 1";
  info.standard_rows.assign(std::begin(kStandardRows), std::end(kStandardRows));
  info.k_tile = kBlock;
  info.exact = false;
  info.facts = {{"arithmetic", "FP16 inputs, FP32 sums"}};
  return info;
}

}  // namespace

Result<std::unique_ptr<Device>> open(const HalfOptions& options, const Clock& clock) {
  if (options.cores.size() > 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" computes on one core, not {}: write half@{}", options.name,
                      options.cores.size(), options.cores.front());
  }
  try {
    return std::unique_ptr<Device>(std::make_unique<HalfDevice>(describe(options), clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: no thread can be started: {}",
                      options.name, error.code().message());
  }
}

namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  if (!request.spec.instance.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write half or half@core",
                      request.spec.text, request.spec.instance);
  }
  return open({request.spec.text, request.spec.cores}, request.clock);
}

}  // namespace

// How the registry knows it.
extern const DeviceType kDeviceType;
const DeviceType kDeviceType{"half", "products of FP16 inputs in plain C++", open_requested};

}  // namespace troika::device::half
