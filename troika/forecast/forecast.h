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
// The shape that a GGUF file's header tells.
Result<ShapedModel> shaped_model_of_file(const std::string& path);

// Another program on the chip: a game on the GPU, a camera on the NPU.
struct Load {
  std::string unit;
  double part = 0;  // of the unit's time, 0 to 0.99
  double gbps = 0;  // of the memory
};

// Another program's work that comes again and again: a game's frames. While a unit computes tasks
// that were submitted before a frame, the frame waits (sim::Load).
struct Frames {
  std::string unit;
  double per_second = 60;
  double ms = 0;    // of the unit's time, each
  double gbps = 0;  // of the memory, meanwhile
};

struct Question {
  int64_t prompt = 256;   // tokens
  int64_t generate = 32;  // tokens
  std::string strategy = "troika";
  sim::Sync sync = sim::Sync::kQueue;
  // Stored for each weight, and for each of the head; 0: as the chip's stack stores them, else 4.
  double weight_bits = 0;
  double head_bits = 0;
  std::optional<Load> load;  // all the time
  std::vector<Frames> frames;
  // The plan is made for the idle chip, and for this sync: `sync` only tells how it runs.
  std::optional<sim::Sync> plan_sync;
  planner::Fidelity fidelity = planner::Fidelity::kContended;
  planner::Variation variation;  // of the runs; plans are made without it
  planner::Budget budget;
  bool with_trace = false;
};

struct UnitUse {
  std::string name;
  double prefill_busy_ms = 0;
  double decode_busy_ms = 0;  // of one token
  double prefill_share = 0;   // of the bytes of weights that are read
  double decode_share = 0;
  double energy_j = 0;    // above idle
  double weights_gb = 0;  // that it holds for both
  int64_t sessions = 0;   // of its driver that these need; 0: it has no limit
};

// Over the seeds of the question's variation; without one, the time itself.
struct Spread {
  double mean_ms = 0;
  double p90_ms = 0;
};

struct Answer {
  double ttft_ms = 0;
  double prefill_tok_s = 0;
  double tpot_ms = 0;       // mean over the generated tokens
  double decode_tok_s = 0;  // the same
  double energy_j = 0;      // prefill and decode, idle power included
  double prefill_energy_j = 0;
  double power_w = 0;
  double prefill_power_w = 0;
  double decode_power_w = 0;
  Bound bound;  // of the prefill
  double bound_ms() const { return bound.us / 1e3; }
  Spread ttft_spread;
  Spread tpot_spread;
  std::vector<UnitUse> units;
  std::vector<double> prefill_frames;  // by Frames of the question: the part that was done
  std::vector<double> decode_frames;
  std::string prefill_plan;  // the planner's sentences
  std::string decode_plan;
  plan::RowsBucket prefill_bucket;
  plan::RowsBucket decode_bucket;
  int64_t evaluations = 0;  // schedules that the planner tried
  double memory_gb = 0;     // weights and the cache of keys and values
  double weight_bits = 0;   // that were taken
  double head_bits = 0;
  std::optional<Trace> trace;  // of the prefill and the first token after it, if asked for
};

// kInvalidArgument for an unknown strategy or unit, kUnsupported if the chip cannot have the model:
// no unit for an operator, more than its memory or than the sessions of a unit hold.
Result<Answer> forecast(const ShapedModel& model, const cost::DescribedCost& chip,
                        const Question& question);

}  // namespace troika::forecast
