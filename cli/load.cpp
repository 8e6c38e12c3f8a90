#include "cli/load.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "cli/cache_folder.h"
#include "cli/default_model.h"
#include "cli/device_prober.h"
#include "cli/interrupt.h"
#include "cli/machine_plan.h"
#include "cli/process_memory.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/version.h"
#include "troika/base/cores.h"
#include "troika/base/trace.h"
#include "troika/base/write_file.h"
#include "troika/device/registry/registry.h"
#include "troika/plan/default_plan.h"

namespace troika::cli {

Result<LoadedModel> load_model(const ModelFlags& flags, bool weights, int64_t threads,
                               Console& console) {
  ASSIGN_OR_RETURN(const std::string path, model_path(flags.path));
  Progress progress(console, "loading");
  model::LoadOptions options;
  options.weights = weights;
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  options.threads = static_cast<int>(threads > 0 ? std::min(threads, cores) : cores);
  options.progress = [&progress](uint64_t done, uint64_t all) {
    progress.update(done, all);
    return !interrupted();
  };
  const TimePoint begin = system_clock().now();
  const int64_t heap_before = heap_in_use().value_or(0);
  auto model = model::Model::load(path, options);
  if (!model && interrupted()) {
    return make_error(ErrorCode::kCancelled, "interrupted while loading {}", in_quotes(path));
  }
  if (!model) return tl::unexpected<Error>(model.error());
  const int64_t heap = std::max<int64_t>(0, heap_in_use().value_or(0) - heap_before);
  return LoadedModel{std::move(*model), system_clock().now() - begin, heap};
}

Result<plan::Plan> read_plan(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, kMaxTextBytes, "--plan -"));
  auto plan = plan::from_json(text);
  if (plan) return plan;
  return make_error(plan.error().code, "{}: {}", in_quotes(path), plan.error().message);
}

namespace {

Status check_names(const std::vector<device::DeviceSpec>& specs) {
  for (const device::DeviceSpec& spec : specs) {
    RETURN_IF_ERROR(device::find_device_type(spec.name));
    RETURN_IF_ERROR(check_names(spec.wrapped));
  }
  return {};
}

Status check_devices(const std::string& devices, const engine::EngineOptions& options) {
  ASSIGN_OR_RETURN(const auto specs, device::parse_device_string(devices));
  RETURN_IF_ERROR(check_names(specs));
  RETURN_IF_ERROR(device::assign_cores(specs, allowed_cores(), options.threads));
  if (!options.split.empty()) RETURN_IF_ERROR(plan::parse_split(options.split, specs.size()));
  return {};
}

// Mistakes in the flags that need no model are told before its weights are read.
Status check_flags(const EngineFlags& flags, const std::optional<plan::Plan>& plan) {
  ASSIGN_OR_RETURN(const engine::EngineOptions options, flags.resolve(model::HyperParameters{}));
  if (!plan || !options.devices.empty()) return check_devices(options.devices, options);
  const Status known = check_devices(fmt::format("{}", fmt::join(plan->devices, ",")), options);
  if (known) return {};
  return make_error(known.error().code, "{}: {}", in_quotes(flags.plan_path),
                    known.error().message);
}

// Plans and confirms on the devices. The plan where it cannot be kept; else none, for the engine
// finds what is kept.
Result<std::optional<plan::Plan>> tuned_plan(const ModelFlags& model_flags,
                                             const EngineFlags& engine_flags, Console& console) {
  MachineRequest request;
  request.model = model_flags;
  request.engine = engine_flags;
  request.tune = true;
  ASSIGN_OR_RETURN(const engine::EngineOptions options,
                   engine_flags.resolve(model::HyperParameters{}));
  ASSIGN_OR_RETURN(const auto specs, device::parse_device_string(options.devices));
  if (specs.size() < 2) {
    console.hint("nothing to plan: " + options.devices + " is the only device");
    return std::nullopt;
  }
  request.engine.devices = options.devices;
  request.planning.max_rows = options.batch_rows;
  request.planning.kv_type = device::to_string(options.kv_type);
  request.planning.activations = plan::activations_name(options.int8_activations);
  request.planning.sync = options.sync;
  ASSIGN_OR_RETURN(MachinePlan plan, plan_machine(request, console));
  for (const engine::PlannedPass& pass : plan.stored.passes) {
    console.hint(fmt::format("tuned, {} rows: {}; {}", pass.rows, pass.name, pass.reason));
  }
  if (!options.cache_folder.empty()) return std::nullopt;
  return std::move(plan.stored.plan);
}

// The default model is no file that a flag names.
Status check_trace_place(const ModelFlags& model_flags, const EngineFlags& flags) {
  if (flags.trace_path.empty()) return {};
  if (flags.trace_path == "-") {
    return make_error(ErrorCode::kInvalidArgument,
                      "--trace: standard output has what is printed already; give a path");
  }
  RETURN_IF_ERROR(check_writable("the trace", flags.trace_path));
  ASSIGN_OR_RETURN(const std::string model, model_path(model_flags.path));
  if (!is_same_file(model, flags.trace_path)) return {};
  return make_error(ErrorCode::kInvalidArgument,
                    "--trace: {} is the model, which would be lost; give another path",
                    in_quotes(flags.trace_path));
}

// What is used instead of rates, and how errors name it.
struct ChosenPlan {
  std::optional<plan::Plan> plan;
  std::string name;
};

Result<LoadedEngine> load_engine_by(const ModelFlags& model_flags, const EngineFlags& engine_flags,
                                    ChosenPlan chosen, Console& console, int64_t max_logit_rows) {
  ASSIGN_OR_RETURN(LoadedModel loaded,
                   load_model(model_flags, true, engine_flags.threads, console));
  const model::HyperParameters& shape = loaded.model.hyper_parameters();
  ASSIGN_OR_RETURN(engine::EngineOptions options, engine_flags.resolve(shape));
  options.max_logit_rows = max_logit_rows;
  options.plan = std::move(chosen.plan);
  options.plan_name = chosen.name;
  options.warn = [&console](const std::string& line) { console.warn(line); };
  options.note = [&console](const std::string& line) { console.note(line); };
  options.tell = [&console](const std::string& line) { console.hint(line); };
  ProberOptions prober;
  prober.open = engine_flags.open_options();
  prober.cache_folder = engine_flags.cache();
  options.cancelled = interrupted;
  options.probe = [prober](const std::string& device) { return probe_device(device, prober); };
  if (engine_flags.context < 0 && options.context == shape.sliding_window) {
    console.hint(
        fmt::format("context: {} tokens, the model's attention window; sliding it is not supported",
                    options.context));
  } else if (engine_flags.context < 0 && shape.n_ctx_train > kDefaultContextLimit) {
    console.hint(
        fmt::format("context: {} tokens, though the model was trained for {}; -c 0 takes "
                    "them all",
                    options.context, shape.n_ctx_train));
  }
  if (engine_flags.threads_batch > 0 && engine_flags.threads_batch != engine_flags.threads) {
    console.note("--threads-batch has no effect: the prompt uses the cores of -t");
  }
  LoadedEngine result;
  result.load_time = loaded.elapsed;
  result.model_heap_bytes = loaded.heap_bytes;
  ASSIGN_OR_RETURN(result.engine, engine::Engine::create(std::move(loaded.model), options));
  const engine::EngineOptions& effective = result.engine->options();
  console.note("plan: " + result.engine->plan().reason);
  console.note(fmt::format("loaded in {:.0f} ms; context {} tokens, KV {}, {} threads",
                           to_ms(result.load_time), effective.context,
                           device::to_string(effective.kv_type), effective.threads));
  for (const auto& [owner, bytes] : result.engine->memory()) {
    console.note(
        fmt::format("memory: {:<14} {:9.1f} MiB", owner, static_cast<double>(bytes) / (1 << 20)));
  }
  return result;
}

}  // namespace

Result<LoadedEngine> load_engine(const ModelFlags& model_flags, const EngineFlags& engine_flags,
                                 Console& console, int64_t max_logit_rows) {
  // A trace that cannot be written is told now, not after the answer.
  RETURN_IF_ERROR(check_trace_place(model_flags, engine_flags));
  ChosenPlan chosen;
  if (!engine_flags.plan_path.empty()) {
    ASSIGN_OR_RETURN(chosen.plan, read_plan(engine_flags.plan_path));
    chosen.name = in_quotes(engine_flags.plan_path);
  }
  RETURN_IF_ERROR(check_flags(engine_flags, chosen.plan));
  if (engine_flags.tune) {
    auto tuned = tuned_plan(model_flags, engine_flags, console);
    if (!tuned && tuned.error().code != ErrorCode::kDeviceFailed) {
      return tl::unexpected<Error>(std::move(tuned.error()));
    }
    // The engine puts aside who fails again: the answer is wanted all the same.
    if (!tuned) console.warn("not tuned: " + tuned.error().message);
    if (tuned) chosen.plan = *std::move(tuned);
  }
  return load_engine_by(model_flags, engine_flags, std::move(chosen), console, max_logit_rows);
}

Result<LoadedEngine> load_engine_with(const ModelFlags& model_flags,
                                      const EngineFlags& engine_flags, plan::Plan plan,
                                      Console& console) {
  return load_engine_by(model_flags, engine_flags, {std::move(plan), "the plan"}, console, 1);
}

void warn_of_context(const engine::Engine& engine, Console& console) {
  const int64_t context = engine.options().context;
  const int64_t trained = engine.model().hyper_parameters().n_ctx_train;
  if (context <= trained) return;
  console.warn(
      fmt::format("the context of {} tokens is longer than the {} that the model was trained for: "
                  "text beyond them may make no sense",
                  context, trained));
}

Status save_trace(const engine::Engine& engine, const EngineFlags& flags) {
  if (flags.trace_path.empty()) return {};
  return write_chrome_json(engine.trace(), flags.trace_path);
}

}  // namespace troika::cli
