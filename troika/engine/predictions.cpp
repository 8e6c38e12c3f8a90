#include "troika/engine/predictions.h"

#include <algorithm>

#include "troika/cost/scaled_cost.h"
#include "troika/engine/engine_state.h"
#include "troika/engine/stored_plan.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/record/profile_store.h"

namespace troika::engine {
namespace {

constexpr Duration kEnough = std::chrono::milliseconds(250);
constexpr int kDisturbedPart = 4;
constexpr double kDrift = 1.3;
// A plan that is made between answers must be found soon.
constexpr int64_t kQuickEvaluations = 60;
// What a corrected plan must gain.
constexpr double kWorthwhile = 0.02;
constexpr double kLeastFactor = 0.05;
constexpr double kMostFactor = 100;
constexpr int64_t kTryAgainAfter = 8;
constexpr int64_t kRows[] = {1, 16, 64, 256, 512, 1024, 2048, 4096};

std::string origin_of(const StoredPlan& stored) {
  if (!stored.confirmed) return "made from a profile";
  const auto measured = std::count_if(stored.passes.begin(), stored.passes.end(),
                                      [](const PlannedPass& pass) { return pass.measured_us > 0; });
  if (measured == std::ssize(stored.passes)) return "confirmed on the devices";
  return fmt::format("{} of {} passes confirmed on the devices", measured, stored.passes.size());
}

}  // namespace

void SeenTime::add(Duration predicted_time, Duration took_time, bool disturbed) {
  const int part = disturbed ? kDisturbedPart : 1;
  predicted += predicted_time / part;
  took += took_time / part;
}

bool SeenTime::is_enough() const { return predicted > Duration::zero() && took >= kEnough; }

std::optional<std::vector<double>> drifted(std::span<const SeenTime> seen) {
  std::vector<double> factors;
  for (const SeenTime& one : seen) {
    factors.push_back(one.is_enough() ? to_us(one.took) / to_us(one.predicted) : 1);
  }
  if (factors.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  if (*most <= kDrift * *least) return std::nullopt;
  return factors;
}

planner::ModelRequest request_for(const MachinePlanOptions& options,
                                  std::span<const device::DeviceInfo> infos) {
  planner::ModelRequest request;
  for (const int64_t rows : kRows) {
    if (rows < options.max_rows) request.rows.push_back(rows);
  }
  request.rows.push_back(options.max_rows);
  request.max_rows = options.max_rows;
  request.decode_depth = options.decode_depth;
  request.kv_type = options.kv_type;
  request.pass.integer_activations = options.activations == plan::activations_name(true);
  request.pass.sync = options.sync == runtime::Sync::kQueue     ? sim::Sync::kQueue
                      : options.sync == runtime::Sync::kPredict ? sim::Sync::kPredict
                                                                : sim::Sync::kBlocking;
  request.pass.infos.assign(infos.begin(), infos.end());
  if (options.evaluations > 0) request.pass.budget.evaluations = options.evaluations;
  request.pass.budget.seed = options.seed;
  return request;
}

void name_devices(plan::Plan& plan, std::span<const cost::DeviceFacts> devices) {
  plan.devices.clear();
  for (const cost::DeviceFacts& device : devices) plan.devices.push_back(device.name);
}

std::vector<double> Predictions::task_us(const graph::Graph& graph, const plan::RowsBucket& bucket,
                                         int64_t rows, int64_t depth) const {
  planner::PassRequest pass = request.pass;
  pass.rows = rows;
  pass.depth = depth;
  const cost::ScaledCost now(*cost, factors);
  const auto forecast = planner::evaluate(graph, now, bucket, pass, true);
  std::vector<double> us;
  if (!forecast || !forecast->trace) return us;
  for (const TraceEvent& event : forecast->trace->events)
    us.push_back(to_us(event.end - event.start));
  return us;
}

double Predictions::pass_us(const graph::Graph& graph, const plan::RowsBucket& bucket) const {
  planner::PassRequest pass = request.pass;
  pass.rows = bucket.max_rows;
  pass.depth = pass.rows == 1 ? request.decode_depth : 0;
  const auto forecast = planner::evaluate(graph, cost::ScaledCost(*cost, factors), bucket, pass);
  return forecast ? forecast->us : 0;
}

Result<Correction> Predictions::corrected(const graph::Graph& graph) const {
  ASSIGN_OR_RETURN(const planner::Strategy wanted, planner::strategy_from(strategy));
  planner::ModelRequest quick = request;
  quick.pass.budget.evaluations = kQuickEvaluations;
  quick.rows.clear();
  for (const plan::RowsBucket& bucket : plan.buckets) quick.rows.push_back(bucket.max_rows);
  quick.max_rows = plan.buckets.back().max_rows;
  ASSIGN_OR_RETURN(planner::ModelPlan made,
                   planner::plan_model(graph, cost::ScaledCost(*cost, factors), wanted, quick));
  Correction correction{plan, {}};
  for (size_t i = 0; i < plan.buckets.size() && i < made.plan.buckets.size(); ++i) {
    plan::RowsBucket& bucket = correction.plan.buckets[i];
    const double before = pass_us(graph, bucket);
    const double after = pass_us(graph, made.plan.buckets[i]);
    if (!(after > 0 && after < before * (1 - kWorthwhile))) continue;
    correction.gains.push_back(
        fmt::format("{} in {:.2f} ms instead of {:.2f} ms",
                    bucket.max_rows == 1 ? "a token" : fmt::format("{} rows", bucket.max_rows),
                    after * 1e-3, before * 1e-3));
    bucket = std::move(made.plan.buckets[i]);
  }
  return correction;
}

std::optional<plan::Plan> Engine::State::find_stored_plan() {
  const bool wanted = options.stored_plan && devices.size() > 1 && options.split.empty() &&
                      !options.force_all && !options.cache_folder.empty();
  if (!wanted) return std::nullopt;
  const auto tell = [&](const std::string& line) {
    if (options.tell) options.tell(line);
  };
  const profile::Profile here =
      profile::empty_profile(graph, devices, options.kv_type, options.build);
  const std::string activations(plan::activations_name(options.int8_activations));
  auto stored = PlanStore(options.cache_folder).find(here, activations);
  if (!stored) {
    if (stored.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (options.warn) {
      options.warn(stored.error().message +
                   "; going on with shares by rates: 'troika plan' makes it anew");
    }
    return std::nullopt;
  }
  plan::Plan& kept = stored->plan;
  // Another file of the same shapes.
  kept.model_fingerprint = graph.model->fingerprint();
  Status fits = plan::check(kept, graph);
  if (fits && kept.buckets.back().max_rows < options.batch_rows) {
    fits = make_error(ErrorCode::kUnsupported, "it is for passes of up to {} rows, not {}",
                      kept.buckets.back().max_rows, options.batch_rows);
  }
  if (!fits) {
    if (options.warn) {
      options.warn(
          fmt::format("the stored plan is not used: {}; 'troika plan --device {} -p {}' "
                      "makes it anew",
                      fits.error().message, options.devices, options.batch_rows));
    }
    return std::nullopt;
  }
  tell(fmt::format("plan: stored, {}; {}", origin_of(*stored), kept.reason));
  keep_predictions(*stored, here);
  return std::move(kept);
}

// Without the profile, which may have been removed, nothing is predicted.
void Engine::State::keep_predictions(const StoredPlan& stored, const profile::Profile& here) {
  const auto measured = profile::ProfileStore(options.cache_folder).find(here);
  if (!measured || !measured->complete) return;
  auto cost = cost::ProfiledCost::create(*measured);
  if (!cost) return;
  MachinePlanOptions machine;
  machine.max_rows = options.batch_rows;
  machine.kv_type = device::to_string(options.kv_type);
  machine.activations = stored.plan.activations;
  machine.sync = options.sync;
  std::vector<device::DeviceInfo> infos;
  for (const auto& device : devices) infos.push_back(device->info());
  predictions = Predictions{std::make_shared<const cost::ProfiledCost>(std::move(*cost)),
                            std::vector<double>(devices.size(), 1),
                            request_for(machine, infos),
                            stored.strategy,
                            stored.plan,
                            0};
}

Status Engine::State::correct_plan() {
  Predictions& known = *predictions;
  std::vector<SeenTime> all;
  std::vector<std::string> lines;
  for (const auto& device : devices) all.push_back(seen_times[device->info().name]);
  // A device that is left out because it was slow shows nothing: some answers later it is tried.
  bool again = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (known.factors[i] <= kDrift || all[i].predicted > Duration::zero()) continue;
    if (++known.answers_without < kTryAgainAfter) continue;
    known.answers_without = 0;
    known.factors[i] = 1;
    again = true;
    lines.push_back(fmt::format("{} is tried again", devices[i]->info().name));
  }
  const auto drift = drifted(all);
  // Old answers must not hide what the next one shows.
  for (size_t i = 0; i < all.size(); ++i) {
    if (drift || all[i].is_enough()) seen_times[devices[i]->info().name] = {};
  }
  if (!drift && !again) return {};
  if (drift) {
    for (size_t i = 0; i < all.size(); ++i) {
      known.factors[i] = std::clamp(known.factors[i] * (*drift)[i], kLeastFactor, kMostFactor);
      if ((*drift)[i] == 1) continue;
      lines.push_back(fmt::format("{} takes {:.2f} times as long as predicted",
                                  devices[i]->info().name, (*drift)[i]));
    }
  }
  const std::string why = fmt::format("{}", fmt::join(lines, ", "));
  ASSIGN_OR_RETURN(Correction better, known.corrected(graph));
  if (better.gains.empty()) {
    // The shares stay; what is predicted follows what was seen.
    if (options.note) options.note("plan: kept, though " + why);
    executor->forget_predictions();
    return {};
  }
  known.plan = std::move(better.plan);
  if (options.tell) {
    options.tell(fmt::format("plan: corrected, for {}: {}", why, fmt::join(better.gains, ", ")));
  }
  retire_executor();
  return make_executor();
}

}  // namespace troika::engine
