#include "troika/device/systolic/systolic_device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <utility>

#include "troika/base/held_values.h"
#include "troika/device/cpu/aligned_floats.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/step.h"
#include "troika/device/result_check.h"

namespace troika::device::systolic {
namespace {

// One pass over a few tokens, and powers of two from a tile on, as graphs for NPUs are built.
constexpr int64_t kStandardRows[] = {1, 32, 64, 128, 256, 512, 1024};

// A product, or operators for the vector unit.
struct Part {
  Program program;                            // its operators alone
  std::shared_ptr<const TiledWeight> weight;  // null: the vector unit
  size_t input = 0;                           // of the product, in Program::tensors
  size_t output = 0;
  std::vector<cpu::Step> steps;
};

struct SystolicKernel final : Kernel {
  Program program;
  Stationary stationary = Stationary::kWeights;
  std::vector<Part> parts;
};

class Systolic final : public SystolicDevice {
 public:
  Systolic(DeviceInfo info, const cpu::KernelTable& kernels, const Clock& clock)
      : info_(std::move(info)),
        kernels_(kernels),
        array_(kernels),
        queue_(info_.name, info_.cores, clock, [this](const Kernel& kernel, const Bindings& b) {
          return run(static_cast<const SystolicKernel&>(kernel), b);
        }) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    RETURN_IF_ERROR(queue_.drain());  // what tasks share may move
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
                        "device {}: not enough memory for its own FP16 weights, {} bytes so far",
                        info_.name, stats().own_bytes);
    }
  }

  DeviceStats stats() const override {
    DeviceStats stats = queue_.stats();
    stats.own_bytes = array_.bytes() + scratch_.bytes();
    stats.own_bytes += weights_.total([](const TiledWeight& weight) { return weight.bytes(); });
    return stats;
  }

  TileCounts counts() const override { return {tiles_.load(), loads_.load()}; }

 private:
  WorkQueue& queue() override { return queue_; }

  Result<std::unique_ptr<Kernel>> make_kernel(const Program& program) {
    auto kernel = std::make_unique<SystolicKernel>();
    kernel->program = program;
    kernel->stationary = program.input_stationary ? Stationary::kInputs : Stationary::kWeights;
    for (Program& piece : cpu::cut_at_products(program)) {
      Part& part = kernel->parts.emplace_back();
      part.program = std::move(piece);
      const graph::Op& op = program.graph->op(part.program.ops.front());
      if (op.kind != graph::OpKind::kMatMul) {
        part.steps = cpu::make_steps(part.program);
        scratch_.reserve(cpu::scratch_floats(part.steps, part.program, kernels_));
        continue;
      }
      ASSIGN_OR_RETURN(part.weight, tiled(graph::weight_slice(*program.graph, op)));
      array_.reserve(program.max_rows, *part.weight, kernel->stationary);
      part.input = program.index_of(op.inputs[0]);
      part.output = program.index_of(op.output);
      part.program.outputs = {op.output};
    }
    return kernel;
  }

  // Kernels of all lengths share the tiles of a slice.
  Result<std::shared_ptr<const TiledWeight>> tiled(const graph::WeightSlice& slice) {
    if (auto weight = weights_.find(slice)) return weight;
    ASSIGN_OR_RETURN(TiledWeight made, TiledWeight::make(slice));
    auto weight = std::make_shared<const TiledWeight>(std::move(made));
    weights_.keep(slice, weight);
    return weight;
  }

  Status run(const SystolicKernel& kernel, const Bindings& bindings) {
    const Part* before = nullptr;
    for (const Part& part : kernel.parts) {
      if (part.weight == nullptr) {
        cpu::run_steps(part.steps, *part.program.graph, kernels_, bindings, scratch_.data());
      } else {
        // Products side by side share their input.
        const bool loaded =
            before != nullptr && before->weight != nullptr && before->input == part.input;
        RETURN_IF_ERROR(run_product(kernel, part, bindings, loaded));
      }
      before = &part;
    }
    return check_finite(info_.name, kernel.program, bindings);
  }

  Status run_product(const SystolicKernel& kernel, const Part& part, const Bindings& bindings,
                     bool loaded) {
    const Program& program = kernel.program;
    const graph::Op& op = program.graph->op(part.program.ops.front());
    const graph::Tensor& input = program.graph->tensor(op.inputs[0]);
    const int64_t rows = bindings.batch->row_count(input.rows);
    if (rows > program.max_rows) {
      return make_error(ErrorCode::kInvalidArgument,
                        "device {}: a task of {} rows for a kernel of {} at most", info_.name, rows,
                        program.max_rows);
    }
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    if (!loaded) {
      const TensorView& x = bindings.tensors[part.input];
      array_.load_inputs(reinterpret_cast<const float*>(x.data), x.row_stride / kFloat, rows,
                         input.width, program.max_rows);
    }
    const TensorView& y = bindings.tensors[part.output];
    const TileCounts counts = array_.multiply(
        *part.weight, kernel.stationary, reinterpret_cast<float*>(y.data), y.row_stride / kFloat);
    tiles_ += counts.tiles;
    loads_ += counts.loads;
    // Here and not only at the end: an input beyond FP16 may be lost to sight in an attention.
    return check_finite(info_.name, part.program, bindings);
  }

  const DeviceInfo info_;
  const cpu::KernelTable& kernels_;
  HeldValues<graph::WeightSlice, const TiledWeight> weights_;
  Array array_;
  cpu::AlignedFloats scratch_;  // of the vector unit
  std::atomic<int64_t> tiles_{0};
  std::atomic<int64_t> loads_{0};
  WorkQueue queue_;  // last: its worker uses all of the above
};

DeviceInfo describe(const SystolicOptions& options, const cpu::KernelTable& kernels) {
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kNpu;
  info.description = fmt::format("software NPU, {0}x{0} cells", kTile);
  info.cores = options.cores;
  info.threads = 1;
  info.version = fmt::format("software NPU 2, {} kernels", kernels.name);
  info.standard_rows.assign(std::begin(kStandardRows), std::end(kStandardRows));
  info.n_tile = kTile;
  info.k_tile = kTile;
  info.exact = false;
  info.facts = {
      {"arithmetic", "FP16 inputs, FP32 sums"},
      {"weights", "FP16; of quantization blocks the levels, scaled after each tile"},
      {"tile", fmt::format("{0}x{0}x{0}", kTile)},
      {"stationary", "weights, or inputs where the plan says so"},
      {"vector unit", fmt::format("host kernels ({}), FP32", kernels.name)},
  };
  return info;
}

}  // namespace

Result<std::unique_ptr<SystolicDevice>> open(const SystolicOptions& options, const Clock& clock) {
  if (options.cores.size() > 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" computes on one core, not {}: write systolic@{}", options.name,
                      options.cores.size(), options.cores.front());
  }
  ASSIGN_OR_RETURN(const cpu::KernelTable* kernels, cpu::choose_kernels(options.kernels));
  try {
    return std::unique_ptr<SystolicDevice>(
        std::make_unique<Systolic>(describe(options, *kernels), *kernels, clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: no thread can be started: {}",
                      options.name, error.code().message());
  }
}

}  // namespace troika::device::systolic
