#include "troika/device/faulty/fault.h"

#include <algorithm>
#include <charconv>

namespace troika::device::faulty {
namespace {

enum class Value { kNone, kTask, kMaybeBytes, kFactor };

struct Name {
  std::string_view name;
  FaultKind kind;
  Value value;
};

constexpr Name kNames[] = {
    {"open-fails", FaultKind::kOpenFails, Value::kNone},
    {"open-hangs", FaultKind::kOpenHangs, Value::kNone},
    {"crash-on-open", FaultKind::kCrashOnOpen, Value::kNone},
    {"wrong-values", FaultKind::kWrongValues, Value::kNone},
    {"nan", FaultKind::kNan, Value::kTask},
    {"inf", FaultKind::kInf, Value::kTask},
    {"hang", FaultKind::kHang, Value::kTask},
    {"hang-compile", FaultKind::kCompileHangs, Value::kTask},
    {"lost", FaultKind::kLost, Value::kTask},
    {"oom", FaultKind::kOutOfMemory, Value::kMaybeBytes},
    {"slow", FaultKind::kSlow, Value::kFactor},
};

// More would only be a long wait.
constexpr double kLargestFactor = 1000;

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

tl::unexpected<Error> bad_fault(std::string_view text, std::string_view what) {
  return make_error(ErrorCode::kInvalidArgument,
                    "fault \"{}\": {}; use open-fails, open-hangs, crash-on-open, wrong-values, "
                    "nan@TASK, inf@TASK, hang@TASK, hang-compile@COMPILATION, lost@TASK, oom, "
                    "oom@BYTES, slow@FACTOR or slow@FACTOR-TASK",
                    text, what);
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  const size_t at = std::min(text.find('@'), text.size());
  const bool has_value = at < text.size();
  const std::string_view value = text.substr(std::min(at + 1, text.size()));
  const auto* const name = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) {
    return n.name == text.substr(0, at);
  });
  if (name == std::end(kNames)) return bad_fault(text, "not a fault");
  Fault fault;
  fault.kind = name->kind;
  fault.text = text;
  switch (name->value) {
    case Value::kNone:
      if (has_value) return bad_fault(text, "takes no value");
      break;
    case Value::kTask:
      if (!parse_number(value, fault.task) || fault.task < 1) {
        return bad_fault(text, "needs a number, counted from 1");
      }
      break;
    case Value::kMaybeBytes:
      if (has_value && (!parse_number(value, fault.bytes) || fault.bytes < 1)) {
        return bad_fault(text, "needs a number of bytes, 1 or more");
      }
      break;
    case Value::kFactor: {
      const size_t dash = std::min(value.find('-'), value.size());
      if (!parse_number(value.substr(0, dash), fault.factor) ||
          !(fault.factor >= 1 && fault.factor <= kLargestFactor)) {
        return bad_fault(text, "needs a factor from 1 to 1000");
      }
      if (dash < value.size() &&
          (!parse_number(value.substr(dash + 1), fault.task) || fault.task < 1)) {
        return bad_fault(text, "needs the number of a task, 1 or more, after the factor");
      }
      break;
    }
  }
  return fault;
}

}  // namespace troika::device::faulty
