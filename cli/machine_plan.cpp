#include "cli/machine_plan.h"

#include <algorithm>

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
constexpr Duration kTuneEach = std::chrono::seconds(8);

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

// Every bucket on the devices, the passes that take longest first.
Status confirm(const MachineRequest& request, MachinePlan& plan, Console& console) {
  EngineFlags flags = request.engine;
  flags.tune = false;
  ASSIGN_OR_RETURN(LoadedEngine loaded,
                   load_engine_with(request.model, flags, plan.stored.plan, console));
  engine::PlanTimer timer(*loaded.engine);
  Progress progress(console, "confirming", true);
  engine::TuneOptions options;
  options.budget = kTuneEach;
  for (size_t i = 0; i < plan.made.passes.size(); ++i) {
    planner::PassPlan& pass = plan.made.passes[i];
    engine::PlannedPass& stored = plan.stored.passes[i];
    const int64_t context = loaded.engine->options().context;
    if (stored.rows > context) continue;
    stored.depth = std::clamp<int64_t>(context - stored.rows - kDecodeSteps, 0, stored.depth);
    const auto measure = [&](const plan::RowsBucket& bucket) -> Result<double> {
      if (interrupted()) {
        return make_error(ErrorCode::kCancelled, "interrupted while plans were measured");
      }
      return timer.time(bucket, stored.rows, stored.depth);
    };
    ASSIGN_OR_RETURN(const engine::TunedPass tuned,
                     engine::tune_pass(engine::choices_of(pass, kMostShared), measure, options));
    stored.name = pass.name = tuned.chosen.name;
    stored.reason = pass.reason = tuned.reason;
    stored.measured_us = tuned.measured_us;
    stored.best_single = pass.best_single = tuned.best_single;
    stored.best_single_us = pass.best_single_us = tuned.best_single_us;
    pass.bucket = plan.stored.plan.buckets[i] = tuned.chosen.bucket;
    pass.co_executes = !tuned.chosen.single;
    console.note(fmt::format("{} rows: {}: {}", stored.rows, stored.name, stored.reason));
    progress.update(i + 1, plan.made.passes.size());
  }
  plan.stored.confirmed = true;
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
  {
    ASSIGN_OR_RETURN(const model::Model model, model_for(request, console));
    ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(model));
    ASSIGN_OR_RETURN(const Basis basis, find_basis(request, graph, console));
    ASSIGN_OR_RETURN(cost::ProfiledCost cost, cost::ProfiledCost::create(basis.profile));
    plan.cost = std::make_shared<const cost::ProfiledCost>(std::move(cost));
    ASSIGN_OR_RETURN(plan.made,
                     planner::plan_model(graph, *plan.cost, strategy,
                                         engine::request_for(request.planning, basis.infos)));
    engine::name_devices(plan.made.plan, plan.cost->devices());
    plan.stored = stored_of(request, basis.profile, plan.made);
  }  // the devices' cores are free again
  if (request.tune) RETURN_IF_ERROR(confirm(request, plan, console));
  plan.stored.plan.reason = reason_of(plan.stored);
  const Status saved = engine::PlanStore(request.engine.cache()).save(plan.stored);
  if (!saved) console.warn(saved.error().message);
  return plan;
}

}  // namespace troika::cli
