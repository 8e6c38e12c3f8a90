// Plans for this machine's devices from a profile: made, confirmed on the devices if that is
// wanted, and kept for later runs.
#pragma once

#include <memory>
#include <string>

#include "cli/console.h"
#include "cli/options.h"
#include "troika/cost/profiled_cost.h"
#include "troika/engine/predictions.h"
#include "troika/engine/stored_plan.h"
#include "troika/planner/model_plan.h"

namespace troika::cli {

struct MachineRequest {
  ModelFlags model;
  EngineFlags engine;        // devices, types, threads; `devices` may be empty with a profile
  std::string profile_path;  // empty: the stored profile of these devices
  std::string strategy = "troika";
  std::string grid;
  engine::MachinePlanOptions planning;
  bool tune = false;  // measure what is not known, and confirm what is planned
};

struct MachinePlan {
  engine::StoredPlan stored;
  planner::ModelPlan made;  // what was predicted, and the alternatives
  std::shared_ptr<const cost::ProfiledCost> cost;
};

// Keeps the plan unless --no-cache. Without `tune`: kNotFound, saying what to do, where there is no
// profile. kCancelled on Ctrl-C; then what was confirmed before is kept.
Result<MachinePlan> plan_machine(const MachineRequest& request, Console& console);

}  // namespace troika::cli
