#include "troika/engine/plan_timer.h"

#include <algorithm>

#include "troika/engine/engine_state.h"

namespace troika::engine {
namespace {

// Each has activations of its own.
constexpr size_t kMostCandidates = 8;
// One step of decode is short: so many are timed together.
constexpr int64_t kSteps = 6;

tl::unexpected<Error> lost_error() {
  return make_error(ErrorCode::kDeviceFailed,
                    "a device was put aside while plans for it were measured: try it with doctor");
}

}  // namespace

PlanTimer::PlanTimer(Engine& engine)
    : state_(*engine.state_), sequence_(engine.state_->cache->new_sequence()) {
  // Kernels must not outlive their devices.
  state_.before_devices_go = [this] {
    candidates_.clear();
    device_lost_ = true;
  };
}

PlanTimer::~PlanTimer() {
  state_.before_devices_go = nullptr;
  state_.cache->release(sequence_);
}

Result<PlanTimer::Candidate*> PlanTimer::candidate_for(const plan::RowsBucket& bucket,
                                                       int64_t rows) {
  plan::Plan plan;
  plan.model_fingerprint = state_.graph.model->fingerprint();
  for (const auto& device : state_.devices) plan.devices.push_back(device->info().name);
  plan.activations = state_.plan.activations;
  plan.kv_type = device::to_string(state_.options.kv_type);
  plan.buckets = {bucket};
  std::string text = plan::to_json(plan);
  const auto known = std::find_if(candidates_.begin(), candidates_.end(),
                                  [&](const Candidate& one) { return one.bucket == text; });
  if (known != candidates_.end()) {
    candidates_.splice(candidates_.begin(), candidates_, known);
    return &candidates_.front();
  }
  if (candidates_.size() >= kMostCandidates) candidates_.pop_back();
  runtime::ExecutorOptions options;
  options.sync = state_.options.sync;
  options.patience = state_.options.patience;
  // A deadline ends compiling, but no pass: that is short.
  options.cancelled = [this] {
    if (compiling_ && tick_) tick_();
    return cancelled() || (compiling_ && is_late());
  };
  compiling_ = true;
  auto executor = runtime::Executor::create(state_.graph, plan, state_.devices, state_.pool,
                                            *state_.cache, options);
  Status prepared;
  if (executor) prepared = (*executor)->prepare(rows);
  compiling_ = false;
  if (!executor) return tl::unexpected<Error>(executor.error());
  RETURN_IF_ERROR(prepared);
  candidates_.push_front({std::move(text), std::move(*executor), false});
  return &candidates_.front();
}

bool PlanTimer::cancelled() const { return state_.options.cancelled && state_.options.cancelled(); }

bool PlanTimer::is_late() const { return deadline_ && state_.clock.now() >= *deadline_; }

// The engine's own plan fills the cache.
Status PlanTimer::bring_to(int64_t rows, int64_t depth) {
  if (rows > state_.options.context - depth) {
    return make_error(ErrorCode::kContextFull,
                      "{} tokens at a depth of {} do not fit a context of {}: raise -c", rows,
                      depth, state_.options.context);
  }
  state_.drop_bench();
  state_.cache->truncate(sequence_, std::min(state_.cache->length(sequence_), depth));
  const int64_t held = state_.cache->length(sequence_);
  const std::vector<model::TokenId> tokens(static_cast<size_t>(depth - held), 1);
  if (tokens.empty()) return {};
  RETURN_IF_ERROR(state_.feed(sequence_, tokens, runtime::WantLogits::kNone));
  return {};
}

Result<double> PlanTimer::run(runtime::Executor& executor, int64_t rows, int64_t depth) {
  RETURN_IF_ERROR(bring_to(rows, depth));
  if (device_lost_) return lost_error();
  const std::vector<model::TokenId> tokens(static_cast<size_t>(rows), 1);
  const int64_t most = state_.options.context - depth;
  const int64_t passes = rows == 1 ? std::min(kSteps, most) : 1;
  const TimePoint begin = state_.clock.now();
  for (int64_t i = 0; i < passes; ++i) {
    RETURN_IF_ERROR(executor.forward({{{sequence_, tokens, runtime::WantLogits::kLast}}}));
  }
  const double us = to_us(state_.clock.now() - begin) / static_cast<double>(passes);
  state_.cache->truncate(sequence_, depth);
  return us;
}

Result<double> PlanTimer::time(const plan::RowsBucket& bucket, int64_t rows, int64_t depth) {
  if (cancelled())
    return make_error(ErrorCode::kCancelled, "interrupted while plans were measured");
  if (is_late()) return make_error(ErrorCode::kCancelled, "the time for measuring plans is spent");
  if (device_lost_) return lost_error();
  ASSIGN_OR_RETURN(Candidate* const candidate, candidate_for(bucket, rows));
  if (!candidate->warm) RETURN_IF_ERROR(run(*candidate->executor, rows, depth));
  candidate->warm = true;
  return run(*candidate->executor, rows, depth);
}

}  // namespace troika::engine
