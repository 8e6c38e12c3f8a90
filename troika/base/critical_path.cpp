#include "troika/base/critical_path.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace troika {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// The tasks of one pass, by their end.
class PassChain {
 public:
  PassChain(const std::vector<TraceEvent>& events, std::vector<size_t> own)
      : events_(events), order_(std::move(own)) {
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::tie(events[a].end, events[a].start, a) <
             std::tie(events[b].end, events[b].start, b);
    });
    std::map<std::string_view, size_t> latest;
    for (size_t place = 0; place < order_.size(); ++place) {
      const auto [same, is_first] = latest.emplace(device(place), kNone);
      before_on_same_.push_back(same->second);
      same->second = place;
      if (place == 0) {
        before_on_other_.push_back(kNone);
      } else {
        const bool other = device(place - 1) != device(place);
        before_on_other_.push_back(other ? place - 1 : before_on_other_[place - 1]);
      }
    }
  }

  // Backwards; each step goes to an earlier place, so that it ends.
  void append_to(std::vector<size_t>& path) const {
    const auto begin = static_cast<ptrdiff_t>(path.size());
    for (size_t place = order_.size() - 1; place != kNone; place = cause_of(place)) {
      path.push_back(order_[place]);
    }
    std::reverse(path.begin() + begin, path.end());
  }

 private:
  std::string_view device(size_t place) const { return events_[order_[place]].device; }

  size_t cause_of(size_t place) const {
    const TraceEvent& event = events_[order_[place]];
    if (event.wait <= Duration::zero()) return before_on_same_[place];
    const auto after = std::upper_bound(
        order_.begin(), order_.begin() + static_cast<ptrdiff_t>(place), event.start,
        [&](TimePoint start, size_t other) { return start < events_[other].end; });
    if (after == order_.begin()) return before_on_same_[place];
    const auto last = static_cast<size_t>(after - order_.begin()) - 1;
    const size_t other = device(last) != event.device ? last : before_on_other_[last];
    // What had ended when the wait began was not waited for.
    const bool waited_for = other != kNone && events_[order_[other]].end > event.start - event.wait;
    return waited_for ? other : before_on_same_[place];
  }

  const std::vector<TraceEvent>& events_;
  std::vector<size_t> order_;
  std::vector<size_t> before_on_same_;   // the place of the device's task before
  std::vector<size_t> before_on_other_;  // the last earlier place of any other device
};

}  // namespace

std::vector<size_t> critical_path(const Trace& trace) {
  std::map<int64_t, std::vector<size_t>> passes;
  for (size_t i = 0; i < trace.events.size(); ++i) passes[trace.events[i].pass].push_back(i);
  std::vector<size_t> path;
  for (auto& [number, own] : passes) PassChain(trace.events, std::move(own)).append_to(path);
  return path;
}

}  // namespace troika
