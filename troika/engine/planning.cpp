// The engine's plan: the user's, or shares by rates that are remembered, measured now, or learnt
// from answers.
#include <algorithm>

#include "troika/base/cache_file.h"
#include "troika/base/thread_time.h"
#include "troika/engine/balance.h"
#include "troika/engine/engine_state.h"
#include "troika/engine/rates_store.h"
#include "troika/plan/give_to_others.h"
#include "troika/runtime/rates.h"

namespace troika::engine {
namespace {

// Each device's part of a product that is cut, if all are to take part.
constexpr double kForcedShare = 0.1;

}  // namespace

Status Engine::State::find_rates() {
  const bool all_known = std::all_of(devices.begin(), devices.end(), [&](const auto& device) {
    return rates.contains(device->info().name);
  });
  if (all_known) return {};
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(line);
  };
  const RatesStore store(options.cache_folder);
  const std::string identity = rates_identity(graph, devices, options.build);
  std::vector<plan::DeviceRates> found;
  if (auto known = store.find(identity, devices.size())) {
    found = std::move(known->rates);
    note("rates: remembered, measured " + ago(seconds_since_1970() - known->time));
  } else {
    note("rates: measuring how fast each device is, which takes up to two seconds");
    const TimePoint start = clock.now();
    runtime::RatesOptions rates_options;
    rates_options.cancelled = options.cancelled;
    const Duration ready_before = time_without_core();
    auto measured = runtime::measure_rates(graph, devices, rates_options, clock);
    if (!measured) {
      const ErrorCode code = measured.error().code;
      if (code == ErrorCode::kDeviceFailed || code == ErrorCode::kCancelled) {
        return tl::unexpected<Error>(std::move(measured.error()));
      }
      note("rates: not measured, so that all devices get the same: " + measured.error().message);
      for (const auto& device : devices) rates[device->info().name] = {1, 1, 1, 1, 1};
      return {};
    }
    found = *std::move(measured);
    const Duration took = clock.now() - start;
    const bool disturbed = was_disturbed(time_without_core() - ready_before, took);
    const Status saved = store.save(identity, found, disturbed);
    note(fmt::format("rates: measured in {:.1f} s{}{}", to_seconds(took),
                     disturbed ? ", on a busy machine: for ten minutes only" : "",
                     saved ? "" : "; not remembered: " + saved.error().message));
  }
  rates.clear();
  for (size_t i = 0; i < devices.size(); ++i) rates[devices[i]->info().name] = found[i];
  return {};
}

Result<plan::Plan> Engine::State::plan_by_rates() {
  plan::DefaultPlanOptions plan_options;
  if (!options.split.empty()) {
    ASSIGN_OR_RETURN(plan_options.split, plan::parse_split(options.split, devices.size()));
  }
  const bool needs_rates = devices.size() > 1 && !plan_options.split.gives_all_shares();
  if (needs_rates) RETURN_IF_ERROR(find_rates());
  shares_by_rates = needs_rates;
  std::vector<device::DeviceInfo> infos;
  std::vector<plan::DeviceRates> own;
  for (const auto& device : devices) {
    infos.push_back(device->info());
    own.push_back(needs_rates ? rates[device->info().name] : plan::DeviceRates{1, 1});
  }
  plan_options.max_rows = options.batch_rows;
  plan_options.kv_type = device::to_string(options.kv_type);
  plan_options.least_share = options.force_all ? kForcedShare : 0;
  plan::Plan made = plan::default_plan(graph, infos, own, plan_options);
  ASSIGN_OR_RETURN(const auto unable,
                   plan::give_to_others(made, graph, [this](size_t device, graph::OpId op) {
                     return devices[device]->supports(graph, op);
                   }));
  for (const std::string& line : unable) {
    if (options.note) options.note(fmt::format("{}: the other devices do", line));
  }
  made.activations = plan::activations_name(options.int8_activations);
  return made;
}

Result<plan::Plan> Engine::State::make_plan() {
  seen.clear();
  seen_times.clear();
  shares_by_rates = false;
  options.batch_rows = wanted_batch_rows;
  options.max_logit_rows = wanted_logit_rows;
  if (!options.plan && predictions) return predictions->plan;
  if (!options.plan) {
    if (auto stored = find_stored_plan()) return *std::move(stored);
    return plan_by_rates();
  }
  predictions.reset();
  if (options.plan->kv_type != device::to_string(options.kv_type)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the plan is for a KV cache of {}, not {}: use --cache-type-k {}",
                      options.plan->kv_type, device::to_string(options.kv_type),
                      options.plan->kv_type);
  }
  if (const std::string_view name = plan::activations_name(options.int8_activations);
      options.plan->activations != name) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the plan is for activations of {}, not {}: use --activations {}",
                      options.plan->activations, name, options.plan->activations);
  }
  // A pass never has more rows than the plan knows.
  options.batch_rows = std::min(options.batch_rows, options.plan->buckets.back().max_rows);
  options.max_logit_rows = std::min(options.max_logit_rows, options.batch_rows);
  return *options.plan;
}

void Engine::State::forget_plan() {
  options.plan.reset();
  predictions.reset();
  options.split.clear();
}

void Engine::State::learn_rates() {
  std::vector<SeenWork> work;
  std::vector<plan::DeviceRates> known;
  for (const auto& device : devices) {
    work.push_back(seen[device->info().name]);
    known.push_back(rates[device->info().name]);
  }
  const std::vector<plan::DeviceRates> learnt = learnt_rates(work, known);
  if (learnt == known) return;
  for (size_t i = 0; i < learnt.size(); ++i) rates[devices[i]->info().name] = learnt[i];
  const RatesStore store(options.cache_folder);
  const Status saved = store.save(rates_identity(graph, devices, options.build), learnt);
  if (!saved && options.note) options.note("rates: not remembered: " + saved.error().message);
}

Status Engine::balance() {
  State& s = *state_;
  s.collect_uses();
  if (s.predictions && s.executor) return s.correct_plan();
  if (!s.shares_by_rates || !s.executor) return {};
  s.learn_rates();
  std::vector<SeenWork> work;
  for (const auto& device : s.devices) work.push_back(s.seen[device->info().name]);
  const Saved saved = saved_by_balance(work);
  if (!try_new_shares(saved, s.tried)) return {};
  s.retire_executor();
  RETURN_IF_ERROR(s.make_executor());
  if (s.options.note) {
    s.options.note(
        fmt::format("rates: new shares, to save {:.0f} % of decode and {:.0f} % of prefill: {}",
                    100 * saved.decode, 100 * saved.prefill, s.plan.reason));
  }
  return {};
}

}  // namespace troika::engine
