// Forecast: what a model would do on a described chip, in the words in which engines are measured.
// Everything here is simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/cost/described_cost.h"
#include "troika/forecast/bound.h"
#include "troika/graph/graph.h"
#include "troika/model/model.h"
#include "troika/planner/model_plan.h"

namespace troika::forecast {

// A model's graph without its weights; owns what the graph refers to.
struct ShapedModel {
  std::unique_ptr<model::Model> model;
  graph::Graph graph;
};
// A shape by name or by its six numbers.
Result<ShapedModel> shaped_model(std::string_view shape);

struct Load {
  std::string unit;
  double part = 0;
  double gbps = 0;
};

struct Question {
  int64_t prompt = 256;   // tokens
  int64_t generate = 32;  // tokens
  std::string strategy = "troika";
  sim::Sync sync = sim::Sync::kQueue;
  double weight_bits = 4;  // of each weight
  std::optional<Load> load;
  // The plan is made without the load, and for this sync: `sync` only tells how it runs.
  std::optional<sim::Sync> plan_sync;
  planner::Budget budget;
  bool with_trace = false;
};

struct UnitUse {
  std::string name;
  double prefill_busy_ms = 0;
  double decode_busy_ms = 0;  // of one token
  double prefill_share = 0;   // of the bytes of weights that are read
  double decode_share = 0;
  double energy_j = 0;  // above idle
};

struct Answer {
  double ttft_ms = 0;
  double prefill_tok_s = 0;
  double tpot_ms = 0;
  double decode_tok_s = 0;  // mean over the generated tokens
  double energy_j = 0;      // prefill and decode, idle power included
  double prefill_energy_j = 0;
  double power_w = 0;
  double prefill_power_w = 0;
  double decode_power_w = 0;
  double bound_ms = 0;  // of the prefill
  std::vector<UnitUse> units;
  std::string prefill_plan;  // the planner's sentences
  std::string decode_plan;
  int64_t evaluations = 0;  // schedules that the planner tried
  std::optional<Trace> prefill_trace;
};

// kInvalidArgument for an unknown strategy or unit, kUnsupported if the chip cannot have the model.
Result<Answer> forecast(const ShapedModel& model, const cost::DescribedCost& chip,
                        const Question& question);

}  // namespace troika::forecast
