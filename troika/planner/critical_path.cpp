#include "troika/planner/critical_path.h"

#include <algorithm>
#include <cmath>

namespace troika::planner {
namespace {

constexpr int32_t kNone = -1;

// By task: the one before it in its device's queue.
std::vector<int32_t> before_in_queue(const sim::Schedule& schedule) {
  std::vector<int32_t> last(schedule.n_devices, kNone);
  std::vector<int32_t> before;
  for (size_t i = 0; i < schedule.tasks.size(); ++i) {
    int32_t& own = last[static_cast<size_t>(schedule.tasks[i].device)];
    before.push_back(own);
    own = static_cast<int32_t>(i);
  }
  return before;
}

template <class Visit>
void each_before(const sim::Schedule& schedule, const std::vector<int32_t>& before, size_t task,
                 const Visit& visit) {
  for (const int32_t other : schedule.waits_of(schedule.tasks[task])) visit(other);
  if (before[task] != kNone) visit(before[task]);
}

}  // namespace

CriticalPath critical_path(const sim::Schedule& schedule, std::span<const sim::TaskTimes> times) {
  CriticalPath path;
  const size_t n = schedule.tasks.size();
  if (n == 0) return path;
  const std::vector<int32_t> before = before_in_queue(schedule);
  size_t last = 0;
  for (size_t i = 1; i < n; ++i) {
    if (times[i].end_us > times[last].end_us) last = i;
  }
  std::vector<double> latest(n, times[last].end_us);
  for (size_t i = n; i-- > 0;) {
    path.slack_us.push_back(latest[i] - times[i].end_us);
    const double start = latest[i] - (times[i].end_us - times[i].start_us);
    each_before(schedule, before, i, [&](int32_t other) {
      double& own = latest[static_cast<size_t>(other)];
      own = std::min(own, start - schedule.tasks[i].delay_us);
    });
  }
  std::reverse(path.slack_us.begin(), path.slack_us.end());
  for (auto task = static_cast<int32_t>(last); task != kNone;) {
    path.tasks.push_back(task);
    int32_t next = kNone;
    each_before(schedule, before, static_cast<size_t>(task), [&](int32_t other) {
      const bool later = next == kNone || times[static_cast<size_t>(other)].end_us >
                                              times[static_cast<size_t>(next)].end_us;
      if (later) next = other;
    });
    task = next;
  }
  std::reverse(path.tasks.begin(), path.tasks.end());
  return path;
}

std::vector<Interval> intervals(const sim::Schedule& schedule,
                                std::span<const sim::TaskTimes> times, const CriticalPath& path,
                                double critical_slack_us) {
  struct Edge {
    double us = 0;
    size_t task = 0;
    bool begins = false;
  };
  std::vector<Edge> edges;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].end_us <= times[i].start_us) continue;
    edges.push_back({times[i].start_us, i, true});
    edges.push_back({times[i].end_us, i, false});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.us < b.us; });
  std::vector<Interval> all;
  uint32_t devices = 0;
  double critical = 0;  // tasks at work
  double now = 0;
  for (const Edge& edge : edges) {
    if (edge.us > now) {
      const bool same = !all.empty() && all.back().devices == devices;
      if (!same) all.push_back({now, now, devices, 0});
      all.back().critical_us += critical * (edge.us - now);
      all.back().end_us = edge.us;
      now = edge.us;
    }
    devices ^= 1u << schedule.tasks[edge.task].device;
    if (path.slack_us[edge.task] <= critical_slack_us) critical += edge.begins ? 1 : -1;
  }
  return all;
}

}  // namespace troika::planner
