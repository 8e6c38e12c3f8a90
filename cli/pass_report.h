// What `troika plan` says about whole passes of a model.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "troika/planner/ablation.h"
#include "troika/planner/model_plan.h"

namespace troika::cli {

// What was planned, and for what. Borrows all of it.
struct PassReport {
  std::string chip;
  std::string stack;
  bool simulated = true;  // a forecast from a description
  std::string model;
  std::string strategy;
  int64_t depth = 0;  // tokens before a pass of one row
  const cost::CostModel& cost;
  const planner::ModelPlan& plan;
};

// `explain`: who computes what, what was tried besides, and how tuning went.
std::string report_text(const PassReport& report, bool explain);
Json report_json(const PassReport& report);

std::string ablation_text(const std::vector<planner::AblationRow>& rows, int64_t tokens);
Json ablation_json(const std::vector<planner::AblationRow>& rows, int64_t tokens);

}  // namespace troika::cli
