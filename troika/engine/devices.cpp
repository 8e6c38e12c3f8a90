// The engine's devices: opened one by one, checked, and put aside when they fail, at load or in the
// middle of an answer.
#include <algorithm>

#include "troika/base/cores.h"
#include "troika/device/check/check.h"
#include "troika/device/check/device_store.h"
#include "troika/device/quarantine.h"
#include "troika/device/registry/registry.h"
#include "troika/engine/engine_state.h"
#include "troika/runtime/rates.h"

namespace troika::engine {
namespace {

// Each device's part of a product that is cut, if all are to take part.
constexpr double kForcedShare = 0.1;

std::string names(const std::vector<std::unique_ptr<device::Device>>& devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + device->info().name;
  return text;
}

// What the user asked for wrongly, and not what the machine lacks.
bool is_users_mistake(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound;
}

struct LostReason {
  std::string name;
  std::string why;
};

struct Candidate {
  device::DeviceSpec spec;
  std::vector<int> cores;
};

// Opens and checks one device; `cpu` is the reference and needs neither probe nor check.
Result<std::unique_ptr<device::Device>> open_one(const Candidate& candidate,
                                                 const EngineOptions& options) {
  device::OpenOptions open_options;
  open_options.threads = options.threads;
  open_options.kernels = options.kernels;
  const bool is_cpu = candidate.spec.name == "cpu";
  if (!is_cpu && options.probe) RETURN_IF_ERROR(options.probe(candidate.spec.text));
  ASSIGN_OR_RETURN(auto device, device::open_device(candidate.spec, candidate.cores, open_options));
  if (is_cpu || !options.check) return device;
  const device::DeviceStore store(options.cache_folder, options.build);
  const auto report = device::check_once(*device, device::device_key(candidate.spec), store);
  if (report) return device;
  if (device->stuck()) device::quarantine(std::shared_ptr<device::Device>(std::move(device)));
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
    auto device = open_one({specs[i], cores[i]}, options);
    if (device) {
      devices.push_back(std::move(*device));
      continue;
    }
    if (is_users_mistake(device.error()) || specs[i].name == "cpu") {
      return tl::unexpected<Error>(device.error());
    }
    refused.push_back(
        fmt::format("device {} is put aside: {}", specs[i].text, device.error().message));
  }
  if (!refused.empty()) forget_plan();
  if (devices.empty()) {
    device::OpenOptions open_options;
    open_options.threads = options.threads;
    open_options.kernels = options.kernels;
    ASSIGN_OR_RETURN(devices, device::open_devices("cpu", open_options));
  }
  for (const std::string& text : refused) {
    if (options.warn) options.warn(fmt::format("{}; going on with {}", text, names(devices)));
  }
  options.threads = 0;
  for (const auto& device : devices) options.threads += device->info().threads;
  return {};
}

void Engine::State::forget_plan() {
  options.plan.reset();
  options.split.clear();
}

Result<plan::Plan> Engine::State::plan_by_rates() {
  const auto known = [&](const std::string& name) {
    return std::find_if(rates.begin(), rates.end(),
                        [&](const auto& entry) { return entry.first == name; });
  };
  plan::DefaultPlanOptions plan_options;
  if (!options.split.empty()) {
    ASSIGN_OR_RETURN(plan_options.split, plan::parse_split(options.split, devices.size()));
  }
  const bool all_known = std::all_of(devices.begin(), devices.end(), [&](const auto& device) {
    return known(device->info().name) != rates.end();
  });
  const auto prescribed = [](const std::optional<plan::SplitRule::Phase>& phase) {
    return phase && !phase->shares.empty();
  };
  const bool needs_rates = devices.size() > 1 && !(prescribed(plan_options.split.prefill) &&
                                                   prescribed(plan_options.split.decode));
  if (!all_known && needs_rates) {
    ASSIGN_OR_RETURN(const auto measured, runtime::measure_rates(graph, devices, {}));
    rates.clear();
    for (size_t i = 0; i < devices.size(); ++i) {
      rates.emplace_back(devices[i]->info().name, measured[i]);
    }
  }
  std::vector<device::DeviceInfo> infos;
  std::vector<plan::DeviceRates> own;
  for (const auto& device : devices) {
    infos.push_back(device->info());
    own.push_back(needs_rates ? known(device->info().name)->second : plan::DeviceRates{1, 1});
  }
  plan_options.max_rows = options.batch_rows;
  plan_options.kv_type = device::to_string(options.kv_type);
  plan_options.least_share = options.force_all ? kForcedShare : 0;
  return plan::default_plan(graph, infos, own, plan_options);
}

Result<plan::Plan> Engine::State::make_plan() {
  if (!options.plan) return plan_by_rates();
  RETURN_IF_ERROR(plan::check(*options.plan, graph));
  if (options.plan->kv_type != device::to_string(options.kv_type)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the plan is for a KV cache of {}, not {}: use --cache-type-k {}",
                      options.plan->kv_type, device::to_string(options.kv_type),
                      options.plan->kv_type);
  }
  // A pass never has more rows than the plan knows.
  options.batch_rows = std::min(options.batch_rows, options.plan->buckets.back().max_rows);
  options.max_logit_rows = std::min(options.max_logit_rows, options.batch_rows);
  return *options.plan;
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
  for (auto& device : devices) {
    if (device->lost() && device->stuck()) {
      device::quarantine(std::shared_ptr<device::Device>(std::move(device)));
    }
  }
  std::erase_if(devices, [](const auto& device) { return device == nullptr || device->lost(); });
  forget_plan();
  if (devices.empty()) {
    all_gone =
        Error{ErrorCode::kDeviceFailed, fmt::format("no device is left: {}", lost.front().why)};
    return tl::unexpected<Error>(*all_gone);
  }
  for (const LostReason& one : lost) {
    if (options.warn) {
      options.warn(fmt::format("device {} is put aside: {}; going on with {}", one.name, one.why,
                               names(devices)));
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
  while (true) {
    const auto made = make_plan();
    if (made) {
      executor_options.max_logit_rows = options.max_logit_rows;
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
    Result<runtime::Logits> logits = executor->forward(batch);
    if (logits || logits.error().code != ErrorCode::kDeviceFailed) return logits;
    RETURN_IF_ERROR(put_lost_aside(logits.error()));
    RETURN_IF_ERROR(make_executor());
  }
}

Status Engine::State::prepare(int64_t rows) {
  if (all_gone) return tl::unexpected<Error>(*all_gone);
  const TimePoint start = system_clock().now();
  Status ready = executor->prepare(rows);
  while (!ready && ready.error().code == ErrorCode::kDeviceFailed) {
    RETURN_IF_ERROR(put_lost_aside(ready.error()));
    RETURN_IF_ERROR(make_executor());
    ready = executor->prepare(rows);
  }
  compile_time += system_clock().now() - start;
  return ready;
}

void Engine::State::retire_executor() {
  if (!executor) return;
  collect_uses();
  const Trace& latest = executor->trace();
  if (trace.devices.empty()) trace.devices = latest.devices;
  trace.events.insert(trace.events.end(), latest.events.begin(), latest.events.end());
  executor.reset();
}

void Engine::State::reset_uses() {
  uses.clear();
  use_macs.clear();
  control = {};
  if (executor) executor->reset_work();
}

void Engine::State::collect_uses() {
  if (!executor) return;
  const auto work = executor->device_work();
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string& name = devices[i]->info().name;
    auto use = std::find_if(uses.begin(), uses.end(),
                            [&](const DeviceUse& other) { return other.name == name; });
    if (use == uses.end()) {
      use = uses.insert(uses.end(), DeviceUse{});
      use->name = name;
      use_macs.push_back(0);
    }
    use_macs[static_cast<size_t>(use - uses.begin())] += work[i].macs;
    use->busy += work[i].busy;
    use->wait += work[i].wait;
    use->tasks += work[i].tasks;
    use->joins += work[i].joins;
    use->join_wait += work[i].join_wait;
  }
  const runtime::ControlWork& latest = executor->control_work();
  control.passes += latest.passes;
  control.submit += latest.submit;
  control.wait += latest.wait;
  control.gather_bytes += latest.gather_bytes;
  executor->reset_work();
  int64_t all = 0;
  for (const int64_t macs : use_macs) all += macs;
  for (size_t i = 0; i < uses.size(); ++i) {
    uses[i].share = all > 0 ? static_cast<double>(use_macs[i]) / static_cast<double>(all) : 0;
  }
}

}  // namespace troika::engine
