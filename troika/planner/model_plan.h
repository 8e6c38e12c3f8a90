// Plans of whole forward passes: who computes which part of every operator, in which chunks and
// order, by what a cost model says, be that of a description or of measurements.
// docs/planning.md tells what is searched and what is approximated.
//
//   auto strategy = planner::strategy_from("troika");
//   PassRequest request;
//   request.rows = 256;
//   auto pass = planner::plan_pass(graph, cost, *strategy, request);      // pass->bucket, reason
//   auto forecast = planner::evaluate(graph, cost, pass->bucket, request);  // the same time again
//
// Nothing here measures, prints or keeps state; the same inputs give the same plan. Any thread may
// plan, if its cost model may be asked from there.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/cost/cost_model.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/planner/objective.h"
#include "troika/planner/strategy.h"
#include "troika/sim/lowered.h"

namespace troika::planner {

// More rows than any pass has that is planned.
inline constexpr int64_t kMaxPassRows = int64_t{1} << 17;

// How much may be tried.
struct Budget {
  int64_t evaluations = 6000;  // schedules that are simulated
  uint64_t seed = 1;           // of the search
};

// How a schedule is judged: its time, or mean and 90th percentile of its times, half each.
struct Variation {
  double deviation = 0;         // of the logarithm of a task's time; 0: none
  double device_deviation = 0;  // of the logarithm of a device's speed in a whole run
  int32_t seeds = 8;

  bool any() const { return (deviation > 0 || device_deviation > 0) && seeds > 0; }
};

// How closely evaluate() looks.
enum class Fidelity {
  kRoofline,   // nothing waits: sim::RooflineRun
  kContended,  // everything that sim::Simulator knows
};

// A forward pass and what is wanted of it.
struct PassRequest {
  int64_t rows = 1;        // tokens in the pass
  int64_t depth = 0;       // tokens of the sequence before it
  int64_t logit_rows = 1;  // rows whose logits are wanted
  sim::Sync sync = sim::Sync::kQueue;
  Objective objective;
  Budget budget;
  Variation variation;
  // A device may round activations to integers where it has no other path for so many rows. False:
  // it computes nothing there.
  bool integer_activations = false;
  // Stored for each weight of a matrix, scales included; 0: as in the model's file.
  double weight_bits = 0;
  double head_bits = 0;  // the same of the head; 0: as of the others
  // Of each element of an activation; 0: as in the graph, where every edge has its type.
  double activation_bits = 0;
  // Static devices build a graph for the very rows at once, and the pass waits for it.
  bool build_graphs = false;
  Fidelity fidelity = Fidelity::kContended;  // of evaluate(); searches simulate
  // What is left of the chip's turbo when the pass begins; nullopt: all of it.
  std::optional<double> turbo_mj;
  // Other programs' work beside what evaluate() runs; devices as in the cost model. Searches plan
  // for the idle chip.
  std::vector<sim::Load> loads;
  // Facts of the devices as opened, in the order of the cost model's; empty: from the cost model.
  std::vector<device::DeviceInfo> infos;
};

// What one pass is expected to take. By device: in the order of the cost model's.
struct Forecast {
  double us = 0;        // the whole, waiting for graphs included
  double mean_us = 0;   // over the seeds of the request's variation; without one, `us`
  double p90_us = 0;    // the same
  double build_us = 0;  // of `us`: graphs that are built
  double fixed_us = 0;  // of `us`: whatever the plan: graphs, and what lies around each pass
  std::vector<double> busy_us;
  std::vector<int64_t> weight_bytes;  // of the slices of weights that the device reads
  std::vector<double> energy_mj;      // of each device, above idle
  double idle_mj = 0;                 // of the chip, all the time
  std::vector<double> loads_done;     // by load: the part of what was due in the pass
  int64_t tasks = 0;
  std::optional<Trace> trace;  // if asked for

  // The time that plans are compared by, and the energy.
  double score_us() const { return (mean_us + p90_us) / 2; }
  double mj() const { return std::accumulate(energy_mj.begin(), energy_mj.end(), idle_mj); }
};

// Any bucket of a plan on any devices of the cost model, by their names. kUnsupported naming what a
// device cannot have; the errors of plan::check().
Result<Forecast> evaluate(const graph::Graph& graph, const cost::CostModel& cost,
                          const plan::RowsBucket& bucket, const PassRequest& request,
                          bool with_trace = false);

// Another way to compute the pass.
struct PassAlternative {
  std::string name;  // "gpu alone", "layer", "paired, 4 chunks"
  plan::RowsBucket bucket;
  double predicted_us = 0;  // HUGE_VAL: it cannot be
  double predicted_mj = 0;
  std::string why_not;
};

// One accepted edit of tuning.
struct TunedBy {
  std::string edit;
  double us = 0;  // after it
  double mj = 0;
};

struct PassPlan {
  plan::RowsBucket bucket;
  std::string name;    // of the winner, as in an alternative
  std::string reason;  // one sentence
  Forecast forecast;   // of the bucket
  bool co_executes = false;
  // The best device alone; empty if no device can have the whole pass.
  std::string best_single;
  double best_single_us = 0;
  double best_single_mj = 0;
  std::vector<PassAlternative> alternatives;  // the best by the objective first
  std::vector<TunedBy> edits;                 // that led to it, where its trace was tuned
  int64_t evaluations = 0;
};

// The best bucket that the strategy allows for this pass; its max_rows is the request's rows. Where
// nothing keeps an objective's limit it is the one nearest to it, and the reason says so.
// kInvalidArgument for a request out of range or a device that does not exist; kUnsupported if
// nothing that the strategy allows can compute the pass, or a power is needed that is not known.
Result<PassPlan> plan_pass(const graph::Graph& graph, const cost::CostModel& cost,
                           const Strategy& strategy, const PassRequest& request);

// A plan of one device alone, with products on `device` and whatever it cannot have elsewhere.
// kUnsupported naming what no device can have.
Result<plan::RowsBucket> single_device_bucket(const graph::Graph& graph,
                                              const cost::CostModel& cost, size_t device,
                                              const PassRequest& request);

struct ModelRequest {
  // Rows of the passes that are planned, ascending; 1 is decode. Passes between two of them use
  // the larger one's bucket. Empty: kDefaultRows up to `max_rows`.
  std::vector<int64_t> rows;
  int64_t max_rows = 4096;   // the longest pass that is served; has a bucket in any case
  int64_t decode_depth = 0;  // tokens before a pass of one row
  std::string kv_type = "f32";
  int32_t threads = 0;  // that plan, each some of the passes; 0: one for each core
  PassRequest pass;     // all but rows and depth
};
inline constexpr int64_t kDefaultRows[] = {1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

struct ModelPlan {
  plan::Plan plan;               // passes plan::check(); names the devices that it uses
  std::vector<PassPlan> passes;  // by bucket
};

// One bucket for each of the rows.
Result<ModelPlan> plan_model(const graph::Graph& graph, const cost::CostModel& cost,
                             const Strategy& strategy, const ModelRequest& request);

}  // namespace troika::planner
