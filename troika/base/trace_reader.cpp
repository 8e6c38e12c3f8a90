// Chrome trace events to a Trace. The text is parsed event by event and never held as a tree.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "troika/base/trace.h"
#include "troika/base/trace_fields.h"

namespace troika {
namespace {

using nlohmann::json;
using enum TraceField;

// Bounds on what is read: far above any real trace, far below what would hurt.
constexpr size_t kMaxTraceBytes = size_t{256} << 20;
constexpr size_t kMaxEvents = 1'000'000;
constexpr size_t kMaxThreads = 256;
constexpr size_t kMaxDepth = 64;
constexpr int kMaxDigits = 100;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDeviceBytes = 256;  // less, since every event holds its device's name
constexpr size_t kMaxTextBytes = 16384;
constexpr double kMaxTimeUs = 4e15;      // from 1970 on too; two of them fit 64 bits of nanoseconds
constexpr double kMaxDurationUs = 1e12;  // eleven days
constexpr int64_t kMaxCount = int64_t{1} << 60;
constexpr int64_t kMaxIndex = int64_t{1} << 30;

// A number's digits, before the parser, which does not bound them, spends time on them.
Status check_digits(std::string_view text) {
  int digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
    if (digits > kMaxDigits) {
      return make_error(ErrorCode::kInvalidData, "trace: more than {} digits in a row at byte {}",
                        kMaxDigits, i);
    }
  }
  return {};
}

// One event's worth of fields to a TraceEvent; the device comes from elsewhere.
Result<TraceEvent> event_from(const TraceFields& fields) {
  TraceEvent event;
  for (const TraceField field : {kName, kTs, kDur}) RETURN_IF_ERROR(fields.require(field));
  RETURN_IF_ERROR(fields.text(kName, kMaxNameBytes, event.name));
  RETURN_IF_ERROR(fields.text(kCategory, kMaxNameBytes, event.stage));
  RETURN_IF_ERROR(fields.integer(kPass, 0, kMaxCount, event.pass));
  RETURN_IF_ERROR(fields.integer(kLayer, -1, kMaxIndex, event.layer));
  RETURN_IF_ERROR(fields.integer(kChunk, -1, kMaxIndex, event.chunk));
  RETURN_IF_ERROR(fields.integer(kSequences, 0, kMaxIndex, event.sequences));
  RETURN_IF_ERROR(fields.integer(kRowBegin, 0, kMaxCount, event.row_begin));
  RETURN_IF_ERROR(fields.integer(kRows, 0, kMaxCount, event.rows));
  RETURN_IF_ERROR(fields.integer(kBytes, 0, kMaxCount, event.bytes));
  RETURN_IF_ERROR(fields.integer(kCopyBytes, 0, kMaxCount, event.copy_bytes));
  RETURN_IF_ERROR(fields.integer(kMacs, 0, kMaxCount, event.macs));
  Duration duration{};
  RETURN_IF_ERROR(fields.time(kTs, kMaxTimeUs, event.start));
  RETURN_IF_ERROR(fields.time(kDur, kMaxDurationUs, duration));
  event.end = event.start + duration;
  event.queued = event.start;
  RETURN_IF_ERROR(fields.time(kQueuedUs, kMaxTimeUs, event.queued));
  RETURN_IF_ERROR(fields.time(kWaitUs, kMaxDurationUs, event.wait));
  RETURN_IF_ERROR(fields.time(kDelayUs, kMaxDurationUs, event.delay));
  RETURN_IF_ERROR(fields.number(kPredictedUs, 0, kMaxDurationUs, event.predicted_us));
  return event;
}

class Reader final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return value(nullptr); }
  bool boolean(bool found) override { return value(found); }
  bool number_integer(json::number_integer_t found) override { return value(found); }
  bool number_unsigned(json::number_unsigned_t found) override { return value(found); }
  bool number_float(json::number_float_t found, const std::string&) override {
    return value(found);
  }
  bool string(std::string& found) override { return value(std::move(found)); }
  bool binary(json::binary_t&) override { return value(nullptr); }
  bool key(std::string& found) override {
    key_ = std::move(found);
    return true;
  }
  bool start_object(size_t) override { return enter(json::object()); }
  bool start_array(size_t) override { return enter(json::array()); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    const bool inside = std::find(places_.begin(), places_.end(), Place::kEvent) != places_.end();
    const std::string where =
        index_ < 0 ? "" : fmt::format(", {} event {}", inside ? "in" : "after", index_);
    return fail({ErrorCode::kInvalidData,
                 fmt::format("trace: not valid JSON at byte {}{}", position, where)});
  }

  Result<Trace> finish();
  Error error() const { return error_; }

 private:
  // What the array or object is that the text is in.
  enum class Place { kFile, kEvents, kEvent, kArgs, kOther, kElsewhere };
  struct Thread {
    std::string name;
    std::string description;
  };

  bool fail(Error error);
  bool value(json found);
  bool enter(const json& kind);
  bool leave();
  Status end_event();
  Status name_thread();
  Result<size_t> thread();

  Trace trace_;
  Error error_;
  std::vector<Place> places_;
  std::string key_;
  TraceFields fields_;  // of the event
  TraceFields other_;   // of otherData
  bool events_seen_ = false;
  int64_t index_ = -1;  // of the event in its array
  std::vector<Thread> threads_;
  std::map<std::pair<int64_t, int64_t>, size_t> thread_numbers_;
  std::vector<uint16_t> threads_of_events_;
};

bool Reader::fail(Error error) {
  error_ = std::move(error);
  return false;
}

// A value of the array or object that the text is in; of an array or object within it, an empty
// one, so that a check of its type fails.
bool Reader::value(json found) {
  if (places_.empty()) {
    return fail({ErrorCode::kInvalidData, "trace: neither a JSON object nor an array"});
  }
  switch (places_.back()) {
    case Place::kEvents:
      return fail(
          {ErrorCode::kInvalidData, fmt::format("trace: event {} is not an object", index_ + 1)});
    case Place::kEvent:
      fields_.set(TraceScope::kEvent, key_, std::move(found));
      return true;
    case Place::kArgs:
      fields_.set(TraceScope::kArgs, key_, std::move(found));
      return true;
    case Place::kOther:
      other_.set(TraceScope::kOther, key_, std::move(found));
      return true;
    case Place::kFile:
      if (key_ != "traceEvents" && key_ != "otherData") return true;
      return fail({ErrorCode::kInvalidData, fmt::format("trace: {} is not an {}", key_,
                                                        key_ == "otherData" ? "object" : "array")});
    case Place::kElsewhere:
      return true;
  }
  return true;
}

bool Reader::enter(const json& kind) {
  if (places_.size() >= kMaxDepth) {
    return fail({ErrorCode::kInvalidData, fmt::format("trace: nested deeper than {}", kMaxDepth)});
  }
  Place place = Place::kElsewhere;
  const Place outer = places_.empty() ? Place::kElsewhere : places_.back();
  if (places_.empty()) {
    place = kind.is_array() ? Place::kEvents : Place::kFile;
  } else if (outer == Place::kFile && key_ == "traceEvents" && kind.is_array()) {
    place = Place::kEvents;
  } else if (outer == Place::kFile && key_ == "otherData" && kind.is_object()) {
    place = Place::kOther;
    other_.begin(-1);
  } else if (outer == Place::kEvents && kind.is_object()) {
    place = Place::kEvent;
    fields_.begin(++index_);
  } else if (outer == Place::kEvent && key_ == "args" && kind.is_object()) {
    place = Place::kArgs;
  } else if (!value(kind)) {
    return false;
  }
  if (place == Place::kEvents) events_seen_ = true;
  places_.push_back(place);
  return true;
}

bool Reader::leave() {
  const Place place = places_.back();
  places_.pop_back();
  if (place != Place::kEvent) return true;
  const Status ended = end_event();
  return ended || fail(ended.error());
}

// The number of the event's thread, which gets one when first met.
Result<size_t> Reader::thread() {
  std::pair<int64_t, int64_t> id;
  RETURN_IF_ERROR(fields_.integer(kPid, -kMaxCount, kMaxCount, id.first));
  RETURN_IF_ERROR(fields_.integer(kTid, -kMaxCount, kMaxCount, id.second));
  const auto [found, is_new] = thread_numbers_.emplace(id, threads_.size());
  if (!is_new) return found->second;
  if (threads_.size() == kMaxThreads) {
    return make_error(ErrorCode::kInvalidData, "trace: event {}: tid is one of more than {}",
                      index_, kMaxThreads);
  }
  threads_.push_back({fmt::format("thread {}", id.second), ""});
  return found->second;
}

Status Reader::name_thread() {
  ASSIGN_OR_RETURN(const size_t number, thread());
  RETURN_IF_ERROR(fields_.require(kThreadName));
  RETURN_IF_ERROR(fields_.text(kThreadName, kMaxDeviceBytes, threads_[number].name));
  return fields_.text(kThreadDescription, kMaxTextBytes, threads_[number].description);
}

Status Reader::end_event() {
  std::string phase;
  RETURN_IF_ERROR(fields_.require(kPhase));
  RETURN_IF_ERROR(fields_.text(kPhase, kMaxNameBytes, phase));
  if (fields_.has(kArgs)) return tl::unexpected<Error>(fields_.wrong(kArgs, "an object"));
  if (phase == "M") {
    std::string name;
    RETURN_IF_ERROR(fields_.text(kName, kMaxNameBytes, name));
    return name == "thread_name" ? name_thread() : Status();
  }
  if (phase != "X") return {};
  if (trace_.events.size() == kMaxEvents) {
    return make_error(ErrorCode::kInvalidData, "trace: event {}: more than {} tasks", index_,
                      kMaxEvents);
  }
  ASSIGN_OR_RETURN(const size_t number, thread());
  ASSIGN_OR_RETURN(TraceEvent event, event_from(fields_));
  trace_.events.push_back(std::move(event));
  threads_of_events_.push_back(static_cast<uint16_t>(number));
  return {};
}

Result<Trace> Reader::finish() {
  if (!events_seen_) return make_error(ErrorCode::kInvalidData, "trace: traceEvents is missing");
  RETURN_IF_ERROR(other_.flag(kSimulated, trace_.simulated));
  RETURN_IF_ERROR(other_.number(kStretch, 1e-9, 1e9, trace_.stretch));
  RETURN_IF_ERROR(other_.text(kTitle, kMaxTextBytes, trace_.title));
  RETURN_IF_ERROR(other_.text(kDescription, kMaxTextBytes, trace_.description));
  for (const Thread& thread : threads_) {
    const auto same = [&thread](const TraceDevice& device) { return device.name == thread.name; };
    if (std::any_of(trace_.devices.begin(), trace_.devices.end(), same)) continue;
    trace_.devices.push_back({thread.name, thread.description});
  }
  for (size_t i = 0; i < trace_.events.size(); ++i) {
    trace_.events[i].device = threads_[threads_of_events_[i]].name;
  }
  return std::move(trace_);
}

}  // namespace

Result<Trace> trace_from_chrome_json(std::string_view text) {
  if (text.size() > kMaxTraceBytes) {
    return make_error(ErrorCode::kInvalidData,
                      "trace: {} bytes, more than the {} MiB that a trace may have", text.size(),
                      kMaxTraceBytes >> 20);
  }
  RETURN_IF_ERROR(check_digits(text));
  Reader reader;
  if (!json::sax_parse(text, &reader)) return tl::unexpected<Error>(reader.error());
  return reader.finish();
}

}  // namespace troika
