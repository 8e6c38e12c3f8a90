// The members of one object of a Chrome trace that a Trace has a place for, read with a check each.
// Used by the reader of traces only.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "troika/base/clock.h"
#include "troika/base/result.h"

namespace troika {

// Where in the file a member stands: of an event, of its "args", or of "otherData".
enum class TraceScope { kEvent, kArgs, kOther };

enum class TraceField : size_t {
  kName,
  kCategory,
  kPhase,
  kPid,
  kTid,
  kTs,
  kDur,
  kArgs,
  kThreadName,
  kThreadDescription,
  kPass,
  kLayer,
  kChunk,
  kSequences,
  kRowBegin,
  kRows,
  kBytes,
  kCopyBytes,
  kMacs,
  kQueuedUs,
  kWaitUs,
  kDelayUs,
  kPredictedUs,
  kSimulated,
  kStretch,
  kTitle,
  kDescription
};
inline constexpr size_t kTraceFields = static_cast<size_t>(TraceField::kDescription) + 1;

class TraceFields {
 public:
  TraceFields() { begin(-1); }
  // Forgets all values; errors from now on name event `event` (-1: none).
  void begin(int64_t event);
  // Keeps the value if it is one of the fields above; the last of the same name counts.
  void set(TraceScope scope, std::string_view key, nlohmann::json value);
  bool has(TraceField field) const { return !value(field).is_discarded(); }

  // kInvalidData if the field is there but not what is wanted. One that is missing leaves `target`
  // as it is.
  Status text(TraceField field, size_t max_bytes, std::string& target) const;
  Status flag(TraceField field, bool& target) const;
  Status number(TraceField field, double least, double most, double& target) const;
  Status integer(TraceField field, int64_t least, int64_t most, int64_t& target) const;
  Status integer(TraceField field, int64_t least, int64_t most, int32_t& target) const;
  // Microseconds from 0 to `most_us`.
  Status time(TraceField field, double most_us, Duration& target) const;

  // kInvalidData unless the field is there.
  Status require(TraceField field) const;
  Error wrong(TraceField field, std::string_view wanted) const;

 private:
  const nlohmann::json& value(TraceField field) const {
    return values_[static_cast<size_t>(field)];
  }
  std::string place(TraceField field) const;

  int64_t event_ = -1;
  std::array<nlohmann::json, kTraceFields> values_;
};

}  // namespace troika
