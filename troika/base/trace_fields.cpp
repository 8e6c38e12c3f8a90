#include "troika/base/trace_fields.h"

#include <cmath>
#include <utility>

#include "troika/base/json_text.h"

namespace troika {
namespace {

using nlohmann::json;

struct FieldName {
  TraceScope scope;
  std::string_view key;
};

constexpr std::array<FieldName, kTraceFields> kNames = {
    {{TraceScope::kEvent, "name"},        {TraceScope::kEvent, "cat"},
     {TraceScope::kEvent, "ph"},          {TraceScope::kEvent, "pid"},
     {TraceScope::kEvent, "tid"},         {TraceScope::kEvent, "ts"},
     {TraceScope::kEvent, "dur"},         {TraceScope::kEvent, "args"},
     {TraceScope::kArgs, "name"},         {TraceScope::kArgs, "description"},
     {TraceScope::kArgs, "pass"},         {TraceScope::kArgs, "layer"},
     {TraceScope::kArgs, "chunk"},        {TraceScope::kArgs, "sequences"},
     {TraceScope::kArgs, "row_begin"},    {TraceScope::kArgs, "rows"},
     {TraceScope::kArgs, "bytes"},        {TraceScope::kArgs, "copy_bytes"},
     {TraceScope::kArgs, "macs"},         {TraceScope::kArgs, "queued_us"},
     {TraceScope::kArgs, "wait_us"},      {TraceScope::kArgs, "delay_us"},
     {TraceScope::kArgs, "predicted_us"}, {TraceScope::kOther, "simulated"},
     {TraceScope::kOther, "stretch"},     {TraceScope::kOther, "title"},
     {TraceScope::kOther, "description"}}};

}  // namespace

void TraceFields::begin(int64_t event) {
  event_ = event;
  for (json& value : values_) value = json::value_t::discarded;
}

void TraceFields::set(TraceScope scope, std::string_view key, json value) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].scope != scope || kNames[i].key != key) continue;
    values_[i] = std::move(value);
    return;
  }
}

std::string TraceFields::place(TraceField field) const {
  const FieldName& name = kNames[static_cast<size_t>(field)];
  const std::string event = event_ < 0 ? "" : fmt::format("event {}: ", event_);
  const std::string_view prefix = name.scope == TraceScope::kArgs    ? "args."
                                  : name.scope == TraceScope::kOther ? "otherData."
                                                                     : "";
  return fmt::format("trace: {}{}{}", event, prefix, name.key);
}

Error TraceFields::wrong(TraceField field, std::string_view wanted) const {
  return {ErrorCode::kInvalidData,
          fmt::format("{} is {}, not {}", place(field), shown(value(field)), wanted)};
}

Status TraceFields::require(TraceField field) const {
  if (has(field)) return {};
  return make_error(ErrorCode::kInvalidData, "{} is missing", place(field));
}

Status TraceFields::text(TraceField field, size_t max_bytes, std::string& target) const {
  if (!has(field)) return {};
  const json& found = value(field);
  if (!found.is_string() || found.get_ref<const std::string&>().size() > max_bytes) {
    return tl::unexpected<Error>(
        wrong(field, fmt::format("a string of at most {} bytes", max_bytes)));
  }
  target = found.get_ref<const std::string&>();
  return {};
}

Status TraceFields::flag(TraceField field, bool& target) const {
  if (!has(field)) return {};
  if (!value(field).is_boolean()) return tl::unexpected<Error>(wrong(field, "true or false"));
  target = value(field).get<bool>();
  return {};
}

Status TraceFields::number(TraceField field, double least, double most, double& target) const {
  if (!has(field)) return {};
  const json& found = value(field);
  const double x = found.is_number() ? found.get<double>() : NAN;
  if (!(x >= least && x <= most)) {
    return tl::unexpected<Error>(wrong(field, fmt::format("a number from {} to {}", least, most)));
  }
  target = x;
  return {};
}

Status TraceFields::integer(TraceField field, int64_t least, int64_t most, int64_t& target) const {
  if (!has(field)) return {};
  const json& found = value(field);
  // Unsigned numbers above the signed range must not wrap into it.
  const bool fits = found.is_number_integer() &&
                    (!found.is_number_unsigned() || found.get<uint64_t>() <= INT64_MAX);
  if (!fits || found.get<int64_t>() < least || found.get<int64_t>() > most) {
    return tl::unexpected<Error>(
        wrong(field, fmt::format("a whole number from {} to {}", least, most)));
  }
  target = found.get<int64_t>();
  return {};
}

Status TraceFields::integer(TraceField field, int64_t least, int64_t most, int32_t& target) const {
  int64_t wide = target;
  RETURN_IF_ERROR(integer(field, least, most, wide));
  target = static_cast<int32_t>(wide);
  return {};
}

Status TraceFields::time(TraceField field, double most_us, Duration& target) const {
  double us = to_us(target);
  RETURN_IF_ERROR(number(field, 0, most_us, us));
  if (has(field)) target = Duration(std::llround(us * 1000));
  return {};
}

}  // namespace troika
