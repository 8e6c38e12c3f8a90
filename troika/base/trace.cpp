#include "troika/base/trace.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <utility>

#include "troika/base/write_file.h"

namespace troika {
namespace {

std::string json_text(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// Microseconds with all the digits of a nanosecond clock. Times before the origin, and tasks that
// end before they start, are a clock's fault: they count as 0.
std::string us(Duration time) {
  const int64_t ns = std::max<int64_t>(time.count(), 0);
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

double positive(double number, double otherwise) {
  return std::isfinite(number) && number > 0 ? number : otherwise;
}

// Numbers threads ("tid") by device and lane from 1 on, and writes each one's name before its first
// use: both lanes of a device carry its name.
class Threads {
 public:
  Threads(const std::vector<TraceDevice>& devices, std::string& out) : out_(out) {
    for (const TraceDevice& device : devices) {
      descriptions_[device.name] = device.description;
      number(device.name, 0);
    }
  }

  int number(const std::string& device, int32_t lane) {
    const auto [found, is_new] =
        numbers_.emplace(std::pair(device, lane), static_cast<int>(numbers_.size()) + 1);
    const int tid = found->second;
    if (!is_new) return tid;
    fmt::format_to(std::back_inserter(out_),
                   "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":"
                   "{{\"name\":{},\"description\":{}}}}},\n"
                   "{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":"
                   "{{\"sort_index\":{}}}}},\n",
                   tid, json_text(device), json_text(descriptions_[device]), tid, tid);
    return tid;
  }

 private:
  std::string& out_;
  std::map<std::string, std::string> descriptions_;
  std::map<std::pair<std::string, int32_t>, int> numbers_;
};

void append_event(const TraceEvent& event, TimePoint origin, int tid, std::string& out) {
  auto end = std::back_inserter(out);
  fmt::format_to(end, "{{\"name\":{},", json_text(event.name));
  if (!event.stage.empty()) fmt::format_to(end, "\"cat\":{},", json_text(event.stage));
  fmt::format_to(end,
                 "\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{"
                 "\"pass\":{},\"layer\":{},\"chunk\":{},\"rows\":{},\"bytes\":{},\"macs\":{},"
                 "\"queued_us\":{},\"wait_us\":{},\"delay_us\":{},\"predicted_us\":{}",
                 tid, us(event.start - origin), us(event.end - event.start), event.pass,
                 event.layer, event.chunk, event.rows, event.bytes, event.macs,
                 us(event.queued - origin), us(event.wait), us(event.delay),
                 positive(event.predicted_us, 0));
  if (event.row_begin != 0) fmt::format_to(end, ",\"row_begin\":{}", event.row_begin);
  if (event.sequences != 0) fmt::format_to(end, ",\"sequences\":{}", event.sequences);
  if (event.copy_bytes != 0) fmt::format_to(end, ",\"copy_bytes\":{}", event.copy_bytes);
  out += "}},\n";
}

// The lanes of one device: an event takes the first that is free at its start.
class Lanes {
 public:
  int32_t take(TimePoint start, TimePoint end) {
    while (!busy_.empty() && busy_.top().first <= start) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    int32_t lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    busy_.emplace(end, lane);
    return lane;
  }

 private:
  using Busy = std::pair<TimePoint, int32_t>;  // until when, which lane
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free_;
  int32_t count_ = 0;
};

}  // namespace

std::vector<TraceDevice> all_devices(const Trace& trace) {
  std::vector<TraceDevice> devices = trace.devices;
  std::map<std::string_view, bool> known;
  for (const TraceDevice& device : trace.devices) known[device.name] = true;
  for (const TraceEvent& event : trace.events) {
    if (std::exchange(known[event.device], true)) continue;
    devices.push_back({event.device, ""});
  }
  return devices;
}

TimePoint trace_origin(const Trace& trace) {
  TimePoint origin = trace.events.empty() ? TimePoint{} : TimePoint::max();
  for (const TraceEvent& event : trace.events) {
    origin = std::min({origin, event.queued, event.start});
  }
  return origin;
}

std::vector<int32_t> overlap_lanes(const Trace& trace, Duration tolerance) {
  const std::vector<TraceEvent>& events = trace.events;
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&events](size_t a, size_t b) { return events[a].start < events[b].start; });
  std::map<std::string_view, Lanes> devices;
  std::vector<int32_t> lanes(events.size());
  for (const size_t i : order) {
    lanes[i] = devices[events[i].device].take(events[i].start + tolerance, events[i].end);
  }
  return lanes;
}

std::string to_chrome_json(const Trace& trace) {
  std::string out = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"simulated\":{},\"stretch\":{},\"title\":{},"
      "\"description\":{}}},\"traceEvents\":[\n",
      trace.simulated, positive(trace.stretch, 1), json_text(trace.title),
      json_text(trace.description));
  const size_t head = out.size();
  if (!trace.title.empty()) {
    fmt::format_to(
        std::back_inserter(out),
        "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{{\"name\":{}}}}},\n",
        json_text(trace.title));
  }
  Threads threads(all_devices(trace), out);
  const std::vector<int32_t> lanes = overlap_lanes(trace);
  const TimePoint origin = trace_origin(trace);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    const int tid = threads.number(event.device, lanes[i]);
    append_event(event, origin, tid, out);
  }
  if (out.size() > head) out.erase(out.size() - 2, 1);  // the comma after the last one
  return out + "]}";
}

Status write_chrome_json(const Trace& trace, const std::string& path) {
  return write_file("the trace", path, to_chrome_json(trace) + "\n");
}

}  // namespace troika
