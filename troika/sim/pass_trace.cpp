// The trace of a simulated pass that was never lowered.
#include <algorithm>

#include "troika/sim/pass_schedule.h"

namespace troika::sim {
namespace {

TimePoint at(double us) { return TimePoint(static_cast<int64_t>(us * 1e3)); }

}  // namespace

Trace trace_of(const PassSchedule& pass, std::span<const TaskFacts> facts,
               std::span<const TaskTimes> times, std::span<const std::string> names) {
  Trace trace;
  trace.simulated = true;
  for (const std::string& name : names) trace.devices.push_back({name, "simulated"});
  trace.events.reserve(facts.size());
  const bool chunks = std::any_of(pass.places.begin(), pass.places.end(),
                                  [](const TaskPlace& place) { return place.chunk > 0; });
  for (size_t i = 0; i < facts.size(); ++i) {
    const Task& task = pass.schedule.tasks[i];
    const TaskPlace& place = pass.places[i];
    TraceEvent event;
    event.stage = to_string(place.stage);
    event.name =
        place.layer < 0 ? event.stage : event.stage + " layer " + std::to_string(place.layer);
    event.device = names[static_cast<size_t>(task.device)];
    event.layer = place.layer;
    event.sequences = 1;
    event.row_begin = facts[i].row_begin;
    event.rows = facts[i].rows;
    if (chunks) event.chunk = place.chunk;
    event.bytes = static_cast<int64_t>(facts[i].bytes);
    event.copy_bytes = static_cast<int64_t>(facts[i].copy_bytes);
    event.macs = static_cast<int64_t>(facts[i].macs);
    event.start = at(times[i].start_us);
    event.end = at(times[i].end_us);
    event.delay = std::min<Duration>(at(task.delay_us), event.start - at(times[i].turn_us));
    event.wait = event.start - at(times[i].turn_us) - event.delay;
    trace.events.push_back(std::move(event));
  }
  return trace;
}

}  // namespace troika::sim
