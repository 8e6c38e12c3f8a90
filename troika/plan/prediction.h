// What a plan's author expected of one of its buckets, and what was tried besides: kept in the plan
// for people and for what compares it with measurements. Nothing is decided by it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "troika/base/result.h"

namespace troika::plan {

inline constexpr size_t kMaxRejected = 16;
inline constexpr size_t kMaxRejectedText = 300;

struct DevicePrediction {
  std::string device;        // one of the plan's
  double busy_us = 0;        // that it works
  int64_t weight_bytes = 0;  // of the slices of weights that it reads
  double mj = 0;             // that it draws above idle; 0: not known
};

// Another way to compute the pass that was not taken.
struct Rejected {
  std::string name;
  double us = 0;  // that it would take; 0: it cannot be
  double mj = 0;  // and draw; 0: not known
  std::string why;
};

// Of a pass of as many rows as the bucket holds.
struct Prediction {
  double us = 0;
  double p90_us = 0;  // with the variation that was planned for; without one, `us`
  double mj = 0;      // of the whole chip, idle included; 0: not known
  std::string reason;
  std::vector<DevicePrediction> devices;
  std::vector<Rejected> rejected;  // the best first, kMaxRejected at most
};

nlohmann::json to_json(const Prediction& prediction);
// Numbers that are finite and not negative, texts of bounded length. `path` is the object's.
// kInvalidData naming the field.
Result<Prediction> prediction_from(const nlohmann::json& object, const std::string& path);

}  // namespace troika::plan
