// The engine's devices: opened one by one, checked, and put aside when they fail, at load or in the
// middle of an answer.
#include <algorithm>
#include <utility>

#include "troika/base/cores.h"
#include "troika/device/check/check.h"
#include "troika/device/check/device_store.h"
#include "troika/device/registry/registry.h"
#include "troika/engine/engine_state.h"

namespace troika::engine {
namespace {

using Devices = std::vector<std::unique_ptr<device::Device>>;

std::string names(const Devices& devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + device->info().name;
  return text;
}

// What a device says of itself begins with its name.
std::string put_aside(const std::string& name, std::string_view why) {
  const std::string own = fmt::format("device {}: ", name);
  if (why.starts_with(own)) why.remove_prefix(own.size());
  return fmt::format("device {} is put aside: {}", name, why);
}

bool is_known(const device::DeviceSpec& spec) {
  const auto types = device::device_types();
  return std::any_of(types.begin(), types.end(),
                     [&](const device::DeviceType* type) { return type->name == spec.name; }) &&
         std::all_of(spec.wrapped.begin(), spec.wrapped.end(), is_known);
}

// Whether going on without the device would not be what was asked for. A driver or chip that is not
// here is no mistake of the user's.
bool ends_loading(const device::DeviceSpec& spec, const Error& error) {
  return spec.name == "cpu" || !is_known(spec) || error.code == ErrorCode::kInvalidArgument ||
         error.code == ErrorCode::kCancelled;
}

struct LostReason {
  std::string name;
  std::string why;
};

struct Candidate {
  device::DeviceSpec spec;
  std::vector<int> cores;
};

device::OpenOptions open_options(const EngineOptions& options) {
  device::OpenOptions open;
  open.threads = options.threads;
  open.kernels = options.kernels;
  open.program_cache_dir = options.cache_folder;
  open.cache_dir = options.graph_folder;
  open.int8_activations = options.int8_activations;
  open.device_times = options.trace;
  open.compile_patience = options.compile_patience;
  return open;
}

// Of what was set and does not hold for the devices as they are.
void warn_of_settings(const EngineOptions& options, int asked_threads, const Devices& devices) {
  std::string in_floats;
  for (const auto& device : devices) {
    if (device->info().int8_inputs) continue;
    in_floats += (in_floats.empty() ? "" : ", ") + device->info().name;
  }
  if (options.int8_activations && !in_floats.empty()) {
    options.warn("--activations int8 has no effect on " + in_floats +
                 ", which takes floats: only devices that can take 8 bits do");
  }
  if (asked_threads > 0 && options.threads > asked_threads) {
    options.warn(fmt::format("-t {}: the devices named use {} threads all the same", asked_threads,
                             options.threads));
  }
}

// Opens and checks one device; `cpu` is the reference and needs neither probe nor check.
Result<std::unique_ptr<device::Device>> open_one(const Candidate& candidate,
                                                 const EngineOptions& options, const Clock& clock) {
  const bool is_cpu = candidate.spec.name == "cpu";
  if (!is_cpu && options.probe) RETURN_IF_ERROR(options.probe(candidate.spec.text));
  ASSIGN_OR_RETURN(auto device, device::open_device(candidate.spec, candidate.cores,
                                                    open_options(options), clock));
  if (is_cpu || !options.check) return device;
  const device::DeviceStore store(options.cache_folder, options.build);
  const auto report = device::check_once(
      *device, device::device_key(candidate.spec, options.int8_activations), store);
  if (report) return device;
  return tl::unexpected<Error>(report.error());
}

}  // namespace

Status Engine::State::open_devices() {
  std::string wanted = options.devices;
  if (options.plan && wanted.empty())
    wanted = fmt::format("{}", fmt::join(options.plan->devices, ","));
  ASSIGN_OR_RETURN(const auto specs, device::parse_device_string(wanted));
  ASSIGN_OR_RETURN(const auto cores, device::assign_cores(specs, allowed_cores(), options.threads));
  std::vector<std::string> refused;
  for (size_t i = 0; i < specs.size(); ++i) {
    auto device = open_one({specs[i], cores[i]}, options, clock);
    if (device) {
      devices.push_back(std::move(*device));
      continue;
    }
    if (ends_loading(specs[i], device.error())) return tl::unexpected<Error>(device.error());
    refused.push_back(put_aside(specs[i].text, device.error().message));
  }
  if (!refused.empty()) forget_plan();
  if (devices.empty()) {
    ASSIGN_OR_RETURN(devices, device::open_devices("cpu", open_options(options), clock));
  }
  for (const std::string& text : refused) {
    if (options.warn) options.warn(fmt::format("{}; going on with {}", text, names(devices)));
  }
  const int asked = std::exchange(options.threads, 0);
  for (const auto& device : devices) options.threads += device->info().threads;
  if (options.warn) warn_of_settings(options, asked, devices);
  return {};
}

Status Engine::State::put_lost_aside(const Error& cause) {
  std::vector<LostReason> lost;
  for (const auto& device : devices) {
    if (!device->lost()) continue;
    LostReason reason{device->info().name, cause.message};
    if (executor) {
      for (const runtime::LostDevice& one : executor->lost_devices()) {
        if (devices[one.index] == device) reason.why = one.reason.message;
      }
    }
    lost.push_back(std::move(reason));
  }
  if (lost.empty()) return tl::unexpected<Error>(cause);
  retire_executor();
  if (before_devices_go) before_devices_go();
  for (const auto& device : devices) stuck = stuck || device->stuck();
  std::erase_if(devices, [](const auto& device) { return device->lost(); });
  forget_plan();
  if (devices.empty()) {
    all_gone =
        Error{ErrorCode::kDeviceFailed,
              fmt::format("no device is left: {}; name another, such as cpu", lost.front().why)};
    return tl::unexpected<Error>(*all_gone);
  }
  for (const LostReason& one : lost) {
    if (options.warn) {
      options.warn(
          fmt::format("{}; going on with {}", put_aside(one.name, one.why), names(devices)));
    }
  }
  return {};
}

Status Engine::State::make_executor() {
  runtime::ExecutorOptions executor_options;
  executor_options.max_logit_rows = options.max_logit_rows;
  executor_options.trace = options.trace;
  executor_options.sync = options.sync;
  executor_options.patience = options.patience;
  executor_options.cancelled = options.cancelled;
  while (true) {
    const auto made = make_plan();
    executor_options.predict = nullptr;
    if (predictions) {
      executor_options.predict = [this](const plan::RowsBucket& bucket, int64_t rows,
                                        int64_t depth) {
        return predictions ? predictions->task_us(graph, bucket, rows, depth)
                           : std::vector<double>{};
      };
    }
    if (made) {
      executor_options.max_logit_rows = options.max_logit_rows;
      executor_options.max_rows = options.batch_rows;
      auto created =
          runtime::Executor::create(graph, *made, devices, pool, *cache, executor_options);
      if (created) {
        plan = *made;
        executor = std::move(*created);
        return {};
      }
      RETURN_IF_ERROR(put_lost_aside(created.error()));
    } else {
      RETURN_IF_ERROR(put_lost_aside(made.error()));
    }
  }
}

Result<runtime::Logits> Engine::State::forward(const runtime::Batch& batch) {
  while (true) {
    if (all_gone) return tl::unexpected<Error>(*all_gone);
    if (!executor) RETURN_IF_ERROR(make_executor());
    Result<runtime::Logits> logits = executor->forward(batch);
    if (logits || logits.error().code != ErrorCode::kDeviceFailed) return logits;
    const Status put_aside = put_lost_aside(logits.error());
    if (options.cancelled && options.cancelled()) {
      return make_error(ErrorCode::kCancelled, "interrupted: {}", logits.error().message);
    }
    RETURN_IF_ERROR(put_aside);
  }
}

Status Engine::State::prepare(int64_t rows) {
  if (all_gone) return tl::unexpected<Error>(*all_gone);
  const TimePoint start = clock.now();
  Status ready;
  while (true) {
    if (!executor) RETURN_IF_ERROR(make_executor());
    ready = executor->prepare(rows);
    if (ready || ready.error().code != ErrorCode::kDeviceFailed) break;
    RETURN_IF_ERROR(put_lost_aside(ready.error()));
  }
  compile_time += clock.now() - start;
  return ready;
}

}  // namespace troika::engine
