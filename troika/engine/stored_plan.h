// Plans that were made from measurements of this machine, kept in a folder of the user's cache: a
// file for each model shape on each set of devices, as profiles are kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/plan/plan.h"
#include "troika/profile/record/profile.h"

namespace troika::engine {

inline constexpr int kStoredPlanVersion = 1;
inline constexpr size_t kMaxStoredPlanBytes = size_t{8} << 20;

// Why one bucket of a plan is as it is. Times are of one pass, us.
struct PlannedPass {
  int64_t rows = 1;
  int64_t depth = 0;          // tokens before it
  std::string name;           // "paired", "cpu@0 alone"
  std::string reason;         // one sentence, up to 400 characters
  double predicted_us = 0;    // by the profile
  std::string best_single;    // "cpu@0 alone": the best that one device can do
  double best_single_us = 0;  // the same by the profile; measured where the plan was confirmed
  double measured_us = 0;     // by alternating runs on the devices; 0: not confirmed
};

struct StoredPlan {
  int64_t time = 0;  // when it was made, in seconds since 1970
  std::string strategy;
  bool confirmed = false;           // some pass, on the devices, by measurement
  profile::Profile of;              // machine, model and devices for which it holds; without points
  std::vector<PlannedPass> passes;  // by bucket
  plan::Plan plan;
};

// A stored plan of any bytes: kInvalidData naming the path of the field, in bounded time and
// memory; kUnsupported for another version. The plan's meaning is for plan::check().
Result<StoredPlan> stored_plan_from_json(std::string_view text);
std::string to_json(const StoredPlan& plan);
// The JSON schema of what stored_plan_from_json() takes; it refers to those of profiles and plans.
std::string stored_plan_schema();

// Any number of programs at once.
class PlanStore {
 public:
  // `folder` is made when something is saved; empty: nothing is kept.
  explicit PlanStore(std::string folder)
      : folder_(folder.empty() ? std::string() : std::move(folder) + "/plans") {}

  // What is kept for this model, these devices and this type of activations; `wanted` needs no
  // points. kNotFound if there is nothing; kInvalidData with the reason if it is damaged or stale,
  // as for a profile.
  Result<StoredPlan> find(const profile::Profile& wanted, std::string_view activations) const;
  Status save(const StoredPlan& plan) const;
  std::string path(const profile::Profile& profile, std::string_view activations) const;

 private:
  const std::string folder_;
};

}  // namespace troika::engine
