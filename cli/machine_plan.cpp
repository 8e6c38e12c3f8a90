#include "cli/machine_plan.h"

#include <algorithm>
#include <cmath>

#include "cli/default_model.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/measured_profile.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "troika/base/cache_file.h"
#include "troika/engine/plan_timer.h"
#include "troika/engine/tuner.h"
#include "troika/graph/graph.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/record/profile_store.h"

namespace troika::cli {
namespace {

// Co-executing plans that are tried on the devices, for each number of rows.
constexpr size_t kMostShared = 3;
constexpr int64_t kDecodeSteps = 8;  // that are timed together

// What a plan is made from.
struct Basis {
  profile::Profile profile;
  std::vector<device::DeviceInfo> infos;  // of the devices as opened; empty: they were not
};

ProfileWish wish_of(const MachineRequest& request) {
  ProfileWish wish;
  wish.devices = request.engine.devices;
  wish.open = request.engine.open_options();
  wish.kv_type = request.planning.kv_type == "f16" ? device::KvType::kF16 : device::KvType::kF32;
  wish.cache_folder = request.engine.cache();
  return wish;
}

// With weights only where something is measured.
Result<model::Model> model_for(const MachineRequest& request, Console& console) {
  if (request.tune) {
    ASSIGN_OR_RETURN(LoadedModel loaded,
                     load_model(request.model, true, request.engine.threads, console));
    return std::move(loaded.model);
  }
  ASSIGN_OR_RETURN(const std::string path, model_path(request.model.path));
  model::LoadOptions options;
  options.sizes_only = true;
  return model::Model::load(path, options);
}

// Whether a profile from elsewhere is of the model's shapes.
Status check_model(const profile::Profile& profile, const graph::Graph& graph,
                   const std::string& path) {
  const profile::ProfiledModel here = profile::profiled_model(
      graph, profile.model.kv_type == "f16" ? device::KvType::kF16 : device::KvType::kF32);
  const std::pair<const char*, int64_t profile::ProfiledModel::*> fields[] = {
      {"n_layers", &profile::ProfiledModel::n_layers},
      {"hidden", &profile::ProfiledModel::hidden},
      {"n_heads", &profile::ProfiledModel::n_heads},
      {"n_kv_heads", &profile::ProfiledModel::n_kv_heads},
      {"head_dim", &profile::ProfiledModel::head_dim},
      {"ffn", &profile::ProfiledModel::ffn},
      {"n_vocab", &profile::ProfiledModel::n_vocab}};
  for (const auto& [name, field] : fields) {
    if (profile.model.*field == here.*field) continue;
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: profile.model.{} is {}, and {} in the model: profile this model",
                      in_quotes(path), name, profile.model.*field, here.*field);
  }
  return {};
}

Result<Basis> find_basis(const MachineRequest& request, const graph::Graph& graph,
                         Console& console) {
  Basis basis;
  std::vector<std::unique_ptr<device::Device>> devices;
  const ProfileWish wish = wish_of(request);
  if (!wish.devices.empty()) {
    ASSIGN_OR_RETURN(devices, open_for_profile(wish, console));
    for (const auto& device : devices) basis.infos.push_back(device->info());
  }
  if (!request.profile_path.empty()) {
    ASSIGN_OR_RETURN(basis.profile, read_profile(request.profile_path));
    RETURN_IF_ERROR(check_model(basis.profile, graph, request.profile_path));
    if (devices.empty()) return basis;
    RETURN_IF_ERROR(profile::check_holds(
        basis.profile, profile::empty_profile(graph, devices, wish.kv_type, basis.profile.build),
        in_quotes(request.profile_path)));
    return basis;
  }
  if (request.tune) {
    ASSIGN_OR_RETURN(basis.profile, measured_profile(wish, graph, devices, console));
    return basis;
  }
  auto stored = stored_profile(wish, graph, devices);
  if (stored && stored->complete) {
    basis.profile = std::move(*stored);
    return basis;
  }
  const std::string why = stored ? "the stored profile is not complete" : stored.error().message;
  return make_error(ErrorCode::kNotFound,
                    "{}: run 'troika profile --device {}' for this model first, or give --tune",
                    why, request.engine.devices);
}

engine::StoredPlan stored_of(const MachineRequest& request, const profile::Profile& profile,
                             const planner::ModelPlan& made) {
  engine::StoredPlan stored;
  stored.time = seconds_since_1970();
  stored.strategy = request.strategy;
  stored.of = profile::without_points(profile);
  stored.plan = made.plan;
  stored.plan.activations = request.planning.activations;
  for (const planner::PassPlan& pass : made.passes) {
    engine::PlannedPass& one = stored.passes.emplace_back();
    one.rows = pass.bucket.max_rows;
    one.depth = one.rows == 1 ? request.planning.decode_depth : 0;
    one.name = pass.name;
    one.reason = pass.reason;
    one.predicted_us = pass.forecast.us;
    one.best_single = pass.best_single;
    one.best_single_us = pass.best_single_us;
  }
  return stored;
}

// One sentence of the whole plan: what its decode and its longest pass do.
std::string reason_of(const engine::StoredPlan& stored) {
  const auto text = [](const engine::PlannedPass& pass) {
    return fmt::format("{}: {}", pass.rows == 1 ? "decode" : fmt::format("{} rows", pass.rows),
                       pass.name);
  };
  std::string all = text(stored.passes.front());
  if (stored.passes.size() > 1) all += "; " + text(stored.passes.back());
  return all;
}

// The devices confirm a plan, or change it, within a budget.
class Confirming {
 public:
  Confirming(const MachineRequest& request, MachinePlan& plan, engine::Engine& engine,
             const planner::ModelRequest& model_request, Console& console)
      : plan_(plan),
        engine_(engine),
        model_request_(model_request),
        console_(console),
        timer_(engine),
        progress_(console, "confirming", true),
        begin_(system_clock().now()),
        budget_(std::chrono::seconds(request.engine.tune_seconds)) {
    timer_.set_tick([this] { show(); });
    timer_.set_deadline(begin_ + budget_);
  }

  Status run() {
    std::vector<size_t> order;  // decode, then the longest passes first
    for (size_t i = plan_.made.passes.size(); i-- > 0;) order.push_back(i);
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t i) { return plan_.stored.passes[i].rows == 1; });
    for (size_t i = 0; i < order.size(); ++i) {
      RETURN_IF_ERROR(pass(order[i], static_cast<int>(order.size() - i)));
      if (interrupted()) break;
    }
    return {};
  }

 private:
  // One of `passes` that are left.
  Status pass(size_t index, int passes) {
    engine::PlannedPass& stored = plan_.stored.passes[index];
    const int64_t context = engine_.options().context;
    if (stored.rows > context) return {};
    stored.depth = std::clamp<int64_t>(context - stored.rows - kDecodeSteps, 0, stored.depth);
    const TimePoint now = system_clock().now();
    const TimePoint end = begin_ + budget_;
    engine::TuneOptions options;
    options.budget = std::max(end - now, Duration::zero()) / passes;
    timer_.forget();
    const auto measure = [&](const plan::RowsBucket& bucket) -> Result<double> {
      show();
      auto us = timer_.time(bucket, stored.rows, stored.depth);
      // A device that was waited for when Ctrl-C came may count as lost.
      if (!us && interrupted()) return make_error(ErrorCode::kCancelled, "interrupted");
      return us;
    };
    ASSIGN_OR_RETURN(const engine::TunedPass tuned,
                     engine::tune_pass(engine::choices_of(plan_.made.passes[index], kMostShared),
                                       measure, options));
    take(index, tuned);
    console_.note(fmt::format("{} rows: {}: {}", stored.rows, stored.name, stored.reason));
    return {};
  }

  void take(size_t index, const engine::TunedPass& tuned) {
    planner::PassPlan& pass = plan_.made.passes[index];
    engine::PlannedPass& stored = plan_.stored.passes[index];
    stored.name = pass.name = tuned.chosen.name;
    if (!tuned.confirmed) {
      stored.reason = pass.reason += "; not confirmed on the devices";
      return;
    }
    stored.reason = pass.reason = tuned.reason;
    stored.measured_us = tuned.measured_us;
    stored.best_single = pass.best_single = tuned.best_single;
    stored.best_single_us = pass.best_single_us = tuned.best_single_us;
    pass.bucket = plan_.stored.plan.buckets[index] = tuned.chosen.bucket;
    pass.co_executes = !tuned.chosen.single;
    planner::PassRequest request = model_request_.pass;
    request.rows = stored.rows;
    request.depth = stored.depth;
    if (auto forecast = planner::evaluate(engine_.graph(), *plan_.cost, pass.bucket, request)) {
      stored.predicted_us = forecast->us;
      pass.forecast = *std::move(forecast);
    }
    plan_.stored.confirmed = true;
  }

  void show() {
    const auto part = [](Duration time) { return static_cast<uint64_t>(to_us(time)); };
    progress_.update(std::min(part(system_clock().now() - begin_), part(budget_)), part(budget_));
  }

  MachinePlan& plan_;
  engine::Engine& engine_;
  const planner::ModelRequest& model_request_;
  Console& console_;
  engine::PlanTimer timer_;
  Progress progress_;
  TimePoint begin_;
  Duration budget_;
};

size_t confirmed_passes(const engine::StoredPlan& stored) {
  return static_cast<size_t>(std::count_if(stored.passes.begin(), stored.passes.end(),
                                           [](const auto& p) { return p.measured_us > 0; }));
}

// Candidates have executors of their own; the engine's only fills the cache, and need not compile
// what is planned.
plan::Plan cheap_plan(const MachinePlan& plan) {
  plan::Plan cheap = plan.stored.plan;
  const planner::PassPlan& longest = plan.made.passes.back();
  for (const planner::PassAlternative& other : longest.alternatives) {
    if (other.name == longest.best_single && std::isfinite(other.predicted_us)) {
      cheap.buckets = {other.bucket};
    }
  }
  return cheap;
}

// Every bucket on the devices. What is known when the budget is spent, or on Ctrl-C, stays.
Status confirm(const MachineRequest& request, const planner::ModelRequest& model_request,
               MachinePlan& plan, Console& console) {
  EngineFlags flags = request.engine;
  flags.tune = false;
  plan::Plan whole = cheap_plan(plan);
  const size_t passes = plan.made.passes.size();
  console.hint(
      fmt::format("tuning: {} passes on the devices, in up to {} s; Ctrl-C keeps what is "
                  "known by then",
                  passes, request.engine.tune_seconds));
  const TimePoint begin = system_clock().now();
  ASSIGN_OR_RETURN(LoadedEngine loaded,
                   load_engine_with(request.model, flags, std::move(whole), console));
  RETURN_IF_ERROR(Confirming(request, plan, *loaded.engine, model_request, console).run());
  console.hint(fmt::format("tuned in {:.0f} s of {}: {} of {} passes are confirmed",
                           to_seconds(system_clock().now() - begin), request.engine.tune_seconds,
                           confirmed_passes(plan.stored), passes));
  return {};
}

}  // namespace

Result<MachinePlan> plan_machine(const MachineRequest& request, Console& console) {
  ASSIGN_OR_RETURN(planner::Strategy strategy, planner::strategy_from(request.strategy));
  if (!request.grid.empty()) {
    ASSIGN_OR_RETURN(strategy.grid, planner::grid_from(request.grid));
    strategy.grid_one_row = strategy.grid;
  }
  MachinePlan plan;
  planner::ModelRequest model_request;
  {
    ASSIGN_OR_RETURN(const model::Model model, model_for(request, console));
    ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(model));
    ASSIGN_OR_RETURN(const Basis basis, find_basis(request, graph, console));
    ASSIGN_OR_RETURN(cost::ProfiledCost cost, cost::ProfiledCost::create(basis.profile));
    plan.cost = std::make_shared<const cost::ProfiledCost>(std::move(cost));
    model_request = engine::request_for(request.planning, basis.infos);
    ASSIGN_OR_RETURN(plan.made, planner::plan_model(graph, *plan.cost, strategy, model_request));
    engine::name_devices(plan.made.plan, plan.cost->devices());
    plan.stored = stored_of(request, basis.profile, plan.made);
  }  // the devices' cores are free again
  if (request.tune) {
    const Status confirmed = confirm(request, model_request, plan, console);
    if (!confirmed && !interrupted()) return tl::unexpected<Error>(confirmed.error());
  }
  plan.stored.plan.reason = reason_of(plan.stored);
  const Status saved = engine::PlanStore(request.engine.cache()).save(plan.stored);
  if (!saved) console.warn(saved.error().message);
  if (request.tune && interrupted()) {
    return make_error(ErrorCode::kCancelled, "interrupted: {} of {} passes are confirmed{}",
                      confirmed_passes(plan.stored), plan.stored.passes.size(),
                      request.engine.cache().empty() || !saved ? "" : ", and the plan is kept");
  }
  return plan;
}

}  // namespace troika::cli
