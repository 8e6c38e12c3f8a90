// What devices and the calling thread did: counted from executor to executor, for a lost device
// ends one.
#include <algorithm>

#include "troika/base/thread_time.h"
#include "troika/engine/engine_state.h"

namespace troika::engine {

// Each executor counts its passes from 0.
Trace Engine::State::whole_trace() const {
  Trace whole = trace;
  if (!executor) return whole;
  const Trace& latest = executor->trace();
  if (whole.devices.empty()) whole.devices = latest.devices;
  int64_t before = 0;
  for (const TraceEvent& event : whole.events) before = std::max(before, event.pass + 1);
  const size_t known = whole.events.size();
  whole.events.insert(whole.events.end(), latest.events.begin(), latest.events.end());
  for (size_t i = known; i < whole.events.size(); ++i) whole.events[i].pass += before;
  return whole;
}

void Engine::State::retire_executor() {
  if (!executor) return;
  collect_uses();
  trace = whole_trace();
  executor.reset();
}

void Engine::State::reset_uses() {
  uses.clear();
  control = {};
  if (executor) executor->reset_work();
  for (const auto& device : devices) cpu_before[device->info().name] = device->stats().cpu;
  process_before = process_cpu_time();
  without_core_before = time_without_core();
  uses_begin = clock.now();
  thread_before = thread_cpu_time();
}

DeviceUse& Engine::State::use_of(const std::string& name) {
  auto use = std::find_if(uses.begin(), uses.end(),
                          [&](const DeviceUse& other) { return other.name == name; });
  if (use == uses.end()) use = uses.insert(uses.end(), {.name = name});
  return *use;
}

void Engine::State::collect_uses() {
  if (!executor) return;
  const auto work = executor->device_work();
  // What was slowed down by others says little of the devices.
  const bool undisturbed =
      !was_disturbed(time_without_core() - without_core_before, clock.now() - uses_begin);
  for (size_t i = 0; i < devices.size(); ++i) {
    DeviceUse& use = use_of(devices[i]->info().name);
    use.threads = devices[i]->info().threads;
    use.macs += work[i].macs;
    use.busy += work[i].busy;
    use.wait += work[i].wait;
    use.tasks += work[i].tasks;
    use.joins += work[i].joins;
    use.join_wait += work[i].join_wait;
    if (shares_by_rates && undisturbed) {
      seen[use.name].add(work[i], executor->control_work().decode_passes);
    }
    if (predictions) {
      seen_times[use.name].add(work[i].predicted, work[i].predicted_busy, !undisturbed);
    }
    use.wake_ups.insert(use.wake_ups.end(), work[i].wake_ups.begin(), work[i].wake_ups.end());
    Duration& before = cpu_before[use.name];
    const Duration now = devices[i]->stats().cpu;
    use.cpu += now - before;
    before = now;
  }
  const runtime::ControlWork& latest = executor->control_work();
  control.passes += latest.passes;
  control.submit += latest.submit;
  control.wait += latest.wait;
  control.gather_bytes += latest.gather_bytes;
  executor->reset_work();
  control.thread = thread_cpu_time() - thread_before;
  control.others = process_cpu_time() - process_before - control.thread;
  int64_t all = 0;
  for (const DeviceUse& use : uses) {
    all += use.macs;
    control.others -= use.cpu;
  }
  control.others = std::max(control.others, Duration::zero());
  for (DeviceUse& use : uses) {
    use.share = all > 0 ? static_cast<double>(use.macs) / static_cast<double>(all) : 0;
  }
}

}  // namespace troika::engine
