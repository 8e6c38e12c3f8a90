#include "troika/device/openvino/module/device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "troika/base/cores.h"
#include "troika/device/openvino/module/flush_denormals.h"
#include "troika/device/openvino/module/graph_task.h"
#include "troika/device/openvino/module/host_task.h"
#include "troika/device/openvino/module/product_task.h"
#include "troika/device/openvino/module/stage_compiler.h"
#include "troika/device/result_check.h"
#include "troika/device/work_queue.h"

namespace troika::device::openvino {
namespace {

// More than any machine has cores: a bound on what is asked of the system.
constexpr int kMaxThreads = 4096;

// Slices of this many floats are whole cache lines, so that rows of one follow each other without
// a gap.
constexpr int64_t kOutputTile = 16;
constexpr int64_t kInputTile = 32;  // a block of weights

// One segment, ready to run: a graph or operators on the host.
struct Part {
  graph::RowCount rows = graph::RowCount::kTokens;
  std::unique_ptr<GraphTask> graph;
  std::unique_ptr<ProductTask> product;
  std::unique_ptr<HostTask> host;
};

struct OpenVinoKernel final : Kernel {
  Program program;
  std::vector<Part> parts;
};

class OpenVinoDevice final : public QueuedDevice {
 public:
  OpenVinoDevice(DeviceInfo info, const OpenVinoOptions& options,
                 std::unique_ptr<PluginState> plugin, const Clock& clock)
      : info_(std::move(info)),
        cores_(options.cores),
        plugin_(std::move(plugin)),
        compiler_(*plugin_, options.cache_dir),
        // The queue pins its worker to one core; with several OpenVINO's threads, which the worker
        // makes it start, must have them all.
        queue_(info_.name, cores_.size() == 1 ? cores_ : std::vector<int>{}, clock,
               [this](const Kernel& kernel, const Bindings& bindings) {
                 return run(static_cast<const OpenVinoKernel&>(kernel), bindings);
               }) {}

  const DeviceInfo& info() const override { return info_; }

  bool supports(const graph::Graph& graph, graph::OpId id) const override {
    const graph::Op& op = graph.op(id);
    const auto is_float = [&](graph::TensorId tensor) {
      return graph.tensor(tensor).type == graph::DType::kF32;
    };
    return is_float(op.output) && std::all_of(op.inputs.begin(), op.inputs.end(), is_float);
  }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    RETURN_IF_ERROR(queue_.drain());
    Result<std::unique_ptr<Kernel>> kernel;
    try {
      run_on_cores(cores_, [&] { kernel = compile_here(program); });
    } catch (const std::system_error& error) {  // from std::thread
      return make_error(ErrorCode::kDeviceFailed, "device {}: no thread to compile on: {}",
                        info_.name, error.code().message());
    }
    return kernel;
  }

  DeviceStats stats() const override {
    DeviceStats stats = queue_.stats();
    stats.copies = counters_->copies;
    stats.copy_bytes = counters_->copy_bytes;
    stats.own_bytes = compiler_.bytes() + counters_->buffer_bytes;
    return stats;
  }

 private:
  WorkQueue& queue() override { return queue_; }

  Result<std::unique_ptr<Kernel>> compile_here(const Program& program) {
    try {
      return compile_parts(program);
    } catch (const std::exception& exception) {
      return make_error(ErrorCode::kDeviceFailed,
                        "device {}: OpenVINO cannot compile {} operators for {} rows: {}",
                        info_.name, program.ops.size(), program.max_rows, one_line(exception));
    }
  }

  Result<std::unique_ptr<Kernel>> compile_parts(const Program& program) {
    if (!program.ops.empty() && std::find(info_.standard_rows.begin(), info_.standard_rows.end(),
                                          program.max_rows) == info_.standard_rows.end()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "device {} has no graphs for {} rows; its lengths are {}", info_.name,
                        program.max_rows, fmt::join(info_.standard_rows, ", "));
    }
    for (const graph::OpId id : program.ops) {
      if (supports(*program.graph, id)) continue;
      return make_error(ErrorCode::kUnsupported, "device {} computes in FP32 only: {} is not",
                        info_.name, program.graph->tensor(program.graph->op(id).output).name);
    }
    auto kernel = std::make_unique<OpenVinoKernel>();
    kernel->program = program;
    const GraphUse use = program.max_rows == 1 ? plugin_->row_use : GraphUse::kStages;
    ASSIGN_OR_RETURN(const std::vector<Segment> segments, make_segments(program, use));
    for (const Segment& segment : segments) {
      Part part;
      part.rows = segment.rows;
      if (segment.on_host) {
        part.host = std::make_unique<HostTask>(program, segment);
      } else {
        ASSIGN_OR_RETURN(auto stage, compiler_.compile(program, segment));
        if (segment.one_product) {
          part.product =
              std::make_unique<ProductTask>(program, segment, std::move(stage), counters_);
        } else {
          part.graph = std::make_unique<GraphTask>(program, segment, std::move(stage), counters_);
        }
      }
      kernel->parts.push_back(std::move(part));
    }
    return kernel;
  }

  Status run(const OpenVinoKernel& kernel, const Bindings& bindings) {
    if (!worker_bound_ && cores_.size() > 1) static_cast<void>(pin_this_thread(cores_));
    worker_bound_ = true;
    try {
      for (const Part& part : kernel.parts) run_part(part, bindings);
    } catch (const std::exception& exception) {
      return make_error(ErrorCode::kDeviceFailed, "device {}: OpenVINO failed in a task: {}",
                        info_.name, one_line(exception));
    }
    return check_finite(info_.name, kernel.program, bindings);
  }

  static void run_part(const Part& part, const Bindings& bindings) {
    if (part.host != nullptr) return part.host->run(bindings);
    const int64_t rows = bindings.batch->row_count(part.rows);
    if (rows == 0) return;
    const FlushDenormals flush;
    if (part.product != nullptr) return part.product->run(bindings);
    part.graph->run(bindings, rows);
  }

  const DeviceInfo info_;
  const std::vector<int> cores_;
  const std::unique_ptr<PluginState> plugin_;
  StageCompiler compiler_;
  const std::shared_ptr<TaskCounters> counters_ = std::make_shared<TaskCounters>();
  bool worker_bound_ = false;  // the worker's
  WorkQueue queue_;            // last: its worker uses all of the above
};

DeviceInfo describe(const OpenVinoOptions& options, const PluginState& plugin) {
  const bool stands_in = plugin.plugin == "CPU";
  const int threads = thread_count(options);
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kNpu;
  info.description =
      stands_in ? fmt::format("{}, OpenVINO's CPU plug-in standing in for an NPU, {} thread{}",
                              plugin.chip, threads, threads == 1 ? "" : "s")
                : fmt::format("{}, an NPU through OpenVINO", plugin.chip);
  info.cores = options.cores;
  info.threads = threads;
  info.version = plugin.version;
  info.standard_rows.assign(std::begin(kStandardRows), std::end(kStandardRows));
  info.n_tile = kOutputTile;
  info.k_tile = kInputTile;
  info.exact = stands_in && !options.int8_activations;
  info.int8_inputs = options.int8_activations;
  info.strided = false;
  info.unified_memory = stands_in;
  const bool blocks = plugin.weights == WeightForm::kBlocks;
  info.facts = {
      {"plug-in", plugin.plugin},
      {"weights",
       fmt::format("{}{}", options.weights_as_inputs ? "F32 and F16 as inputs, others " : "",
                   blocks ? "constants, in blocks as stored" : "constants, in FP16")},
      {"activations", options.int8_activations ? "int8"
                      : stands_in              ? "f32"
                                               : "f16"},
      {"longest graph", fmt::format("{} rows", plugin.most_rows)},
      {"host operators", fmt::format("Embed, RopeTable, KvWrite, Attention, GatherRows: {} kernels "
                                     "on the device's thread",
                                     cpu::available_kernels().front()->name)},
  };
  return info;
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const OpenVinoOptions& options, const Clock& clock) {
  const int threads = thread_count(options);
  if (threads < 1 || threads > kMaxThreads) {
    return make_error(ErrorCode::kInvalidArgument, "device {}: {} threads; use 1 to {}",
                      options.name, threads, kMaxThreads);
  }
  try {
    ASSIGN_OR_RETURN(auto plugin, open_plugin(options));
    DeviceInfo info = describe(options, *plugin);
    return std::unique_ptr<Device>(
        std::make_unique<OpenVinoDevice>(std::move(info), options, std::move(plugin), clock));
  } catch (const std::exception& exception) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: cannot be started: {}", options.name,
                      one_line(exception));
  }
}

}  // namespace troika::device::openvino
