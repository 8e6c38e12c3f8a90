#include "troika/runtime/executor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "troika/device/quarantine.h"
#include "troika/runtime/pass.h"

namespace troika::runtime {
namespace {

// Attention's time follows the tokens before a pass: predictions are made anew for more of them.
constexpr int64_t kDepthStep = 64;

// Schedules for exact numbers of rows that are kept: a chat's prompts have many lengths.
constexpr size_t kKeptSchedules = 24;

Status check_devices(const plan::Plan& plan,
                     std::span<const std::unique_ptr<device::Device>> devices) {
  if (plan.devices.size() != devices.size()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the plan is for {} devices ({}), but {} are open: open those that it names",
                      plan.devices.size(), fmt::join(plan.devices, ","), devices.size());
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (plan.devices[i] == devices[i]->info().name) continue;
    return make_error(
        ErrorCode::kInvalidArgument,
        "the plan's device {} is \"{}\", but \"{}\" is open: open those that it names", i,
        plan.devices[i], devices[i]->info().name);
  }
  return {};
}

}  // namespace

std::string_view to_string(Sync sync) {
  switch (sync) {
    case Sync::kBlocking:
      return "blocking";
    case Sync::kPredict:
      return "predict";
    case Sync::kQueue:
      return "queue";
  }
  return "";
}

struct Executor::State {
  const graph::Graph& graph;
  const plan::Plan plan;
  device::SharedPool& pool;
  KvCache& cache;
  PassContext context;
  std::vector<std::unique_ptr<Schedule>> schedules;
  device::SharedBlock activations;
  std::vector<float> packed_logits;  // rows without padding between them
  uint64_t uses = 0;

  int64_t max_rows() const {
    const int64_t planned = plan.buckets.back().max_rows;
    return context.options.max_rows > 0 ? std::min(planned, context.options.max_rows) : planned;
  }
  Status lower_all();
  Status compile_on_devices(Schedule& schedule);
  Result<Schedule*> schedule_for(int64_t rows);
  Status make_room(const Schedule& schedule);
  void predict(Schedule& schedule, int64_t rows, const Batch& batch) const;
  void forget_oldest();
  Status check(const Batch& batch) const;
  Status check_distinct(const Batch& batch) const;
  Result<Logits> run(const Batch& batch);
  Result<Logits> collect(const Schedule& schedule);
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}

Executor::~Executor() {
  const auto& devices = state_->context.devices;
  const bool stuck =
      std::any_of(devices.begin(), devices.end(), [](const auto& d) { return d->stuck(); });
  if (stuck) device::quarantine(std::shared_ptr<State>(std::move(state_)));
}

Result<std::unique_ptr<Executor>> Executor::create(
    const graph::Graph& graph, const plan::Plan& plan,
    std::span<const std::unique_ptr<device::Device>> devices, device::SharedPool& pool,
    KvCache& cache, const ExecutorOptions& options) {
  RETURN_IF_ERROR(plan::check(plan, graph));
  RETURN_IF_ERROR(check_devices(plan, devices));
  if (options.max_logit_rows < 1) {
    return make_error(ErrorCode::kInvalidArgument, "{} rows of logits: use 1 or more",
                      options.max_logit_rows);
  }
  auto state = std::make_unique<State>(State{.graph = graph,
                                             .plan = plan,
                                             .pool = pool,
                                             .cache = cache,
                                             .context = PassContext(devices, options),
                                             .schedules = {},
                                             .activations = {},
                                             .packed_logits = {}});
  std::unique_ptr<Executor> executor(new Executor(std::move(state)));
  RETURN_IF_ERROR(executor->state_->lower_all());
  return executor;
}

// A plan that cannot be run is found out before anything runs; memory is taken once.
Status Executor::State::lower_all() {
  int64_t bytes = 0;
  for (size_t i = 0; i < plan.buckets.size(); ++i) {
    const int64_t rows = std::min(plan.buckets[i].max_rows, max_rows());
    ASSIGN_OR_RETURN(auto schedule, make_schedule(plan, i, graph, rows,
                                                  context.options.max_logit_rows, context.devices));
    bytes = std::max(bytes, schedule->list.memory.bytes);
    schedules.push_back(std::move(schedule));
    if (rows == max_rows()) break;
  }
  ASSIGN_OR_RETURN(activations, pool.allocate("activations", bytes));
  for (auto& schedule : schedules) {
    bind(*schedule, activations.data());
    if (schedule->list.any_rows) RETURN_IF_ERROR(compile_on_devices(*schedule));
  }
  return {};
}

// A device that cannot compile what it supports is lost.
Status Executor::State::compile_on_devices(Schedule& schedule) {
  size_t device = 0;
  Status compiled = compile(schedule, context.devices, context.options.cancelled, device);
  if (!compiled && compiled.error().code != ErrorCode::kCancelled) {
    context.lose(device, compiled.error());
  }
  return compiled;
}

void Executor::State::forget_oldest() {
  if (schedules.size() < plan.buckets.size() + kKeptSchedules) return;
  const auto oldest =
      std::min_element(schedules.begin(), schedules.end(), [](const auto& a, const auto& b) {
        return a->list.any_rows != b->list.any_rows ? b->list.any_rows
                                                    : a->last_used < b->last_used;
      });
  schedules.erase(oldest);
}

// Padding may need more than the longest pass does.
Status Executor::State::make_room(const Schedule& schedule) {
  if (schedule.list.memory.bytes <= activations.bytes()) return {};
  ASSIGN_OR_RETURN(activations, pool.allocate("activations", schedule.list.memory.bytes));
  for (auto& other : schedules) bind(*other, activations.data());
  return {};
}

Result<Schedule*> Executor::State::schedule_for(int64_t rows) {
  const plan::RowsBucket* wanted = plan.bucket(rows);
  const auto bucket = static_cast<size_t>(wanted - plan.buckets.data());
  auto found = std::find_if(schedules.begin(), schedules.end(),
                            [&](const auto& s) { return s->serves(bucket, rows); });
  if (found == schedules.end()) {
    ASSIGN_OR_RETURN(auto schedule, make_schedule(plan, bucket, graph, rows,
                                                  context.options.max_logit_rows, context.devices));
    RETURN_IF_ERROR(make_room(*schedule));
    bind(*schedule, activations.data());
    forget_oldest();
    found = schedules.insert(schedules.end(), std::move(schedule));
  }
  Schedule& schedule = **found;
  schedule.last_used = ++uses;
  if (!schedule.kernels.empty()) return &schedule;
  const Status compiled = compile_on_devices(schedule);
  if (!compiled && compiled.error().code == ErrorCode::kCancelled) {
    return tl::unexpected<Error>(compiled.error());
  }
  if (!compiled) {
    return make_error(ErrorCode::kDeviceFailed, "{}", compiled.error().message);
  }
  return &schedule;
}

Status Executor::prepare(int64_t rows) {
  if (rows < 1 || rows > max_rows()) {
    return make_error(ErrorCode::kInvalidArgument, "a pass has 1 to {} rows, not {}", max_rows(),
                      rows);
  }
  RETURN_IF_ERROR(state_->schedule_for(rows));
  return {};
}

void Executor::State::predict(Schedule& schedule, int64_t rows, const Batch& batch) const {
  if (!context.options.predict) return;
  int64_t depth = 0;
  for (const BatchItem& item : batch.items) depth += cache.length(item.sequence);
  depth /= static_cast<int64_t>(batch.items.size());
  const int64_t step = std::max(kDepthStep, depth / 8);
  if (schedule.predicted_rows == rows && schedule.predicted_depth >= 0 &&
      std::abs(schedule.predicted_depth - depth) < step) {
    return;
  }
  schedule.predicted_rows = rows;
  schedule.predicted_depth = depth;
  schedule.predicted_us = context.options.predict(plan.buckets[schedule.bucket], rows, depth);
  if (schedule.predicted_us.size() != schedule.list.tasks.size()) schedule.predicted_us.clear();
}

Status Executor::State::check_distinct(const Batch& batch) const {
  if (batch.items.size() < 2) return {};
  std::vector<SequenceId> ids;
  for (const BatchItem& item : batch.items) ids.push_back(item.sequence);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return make_error(ErrorCode::kInvalidArgument, "sequence {} stands twice in a batch", *twice);
}

Status Executor::State::check(const Batch& batch) const {
  int64_t rows = 0;
  int64_t logit_rows = 0;
  for (const BatchItem& item : batch.items) {
    if (item.tokens.empty() || !cache.exists(item.sequence)) {
      return make_error(ErrorCode::kInvalidArgument, "a batch item has {} tokens for sequence {}{}",
                        item.tokens.size(), item.sequence,
                        cache.exists(item.sequence) ? "" : ", which does not exist");
    }
    for (const model::TokenId token : item.tokens) {
      if (token < 0 || token >= graph.n_vocab) {
        return make_error(ErrorCode::kInvalidArgument, "token id {} is not in 0 to {}", token,
                          graph.n_vocab - 1);
      }
    }
    rows += static_cast<int64_t>(item.tokens.size());
    if (item.logits == WantLogits::kLast) ++logit_rows;
    if (item.logits == WantLogits::kAll) logit_rows += static_cast<int64_t>(item.tokens.size());
  }
  if (rows == 0 || rows > max_rows()) {
    return make_error(ErrorCode::kInvalidArgument, "a pass has 1 to {} rows, not {}", max_rows(),
                      rows);
  }
  if (logit_rows > context.options.max_logit_rows) {
    return make_error(ErrorCode::kInvalidArgument,
                      "logits of {} rows are wanted, {} at most are given", logit_rows,
                      context.options.max_logit_rows);
  }
  return check_distinct(batch);
}

Result<Logits> Executor::State::collect(const Schedule& schedule) {
  const PassViews& views = context.views;
  Logits logits;
  logits.rows = views.logit_rows();
  logits.n_vocab = graph.n_vocab;
  logits.data = schedule.logits;
  if (schedule.logits_stride != graph.n_vocab && logits.rows > 1) {
    packed_logits.resize(static_cast<size_t>(logits.rows * graph.n_vocab));
    for (int64_t i = 0; i < logits.rows; ++i) {
      std::copy_n(schedule.logits + i * schedule.logits_stride, graph.n_vocab,
                  packed_logits.begin() + i * graph.n_vocab);
    }
    logits.data = packed_logits.data();
  }
  for (int64_t i = 0; i < logits.rows; ++i) {
    const std::span<const float> row = logits.row(i);
    const auto bad =
        std::count_if(row.begin(), row.end(), [](float value) { return !std::isfinite(value); });
    if (bad > 0) {
      return make_error(ErrorCode::kInvalidData,
                        "{} of {} logits at position {} are NaN or infinite: the model's numbers "
                        "overflow or its file is damaged",
                        bad, row.size(), views.position(views.logit_row(i)));
    }
  }
  return logits;
}

Result<Logits> Executor::State::run(const Batch& batch) {
  int64_t rows = 0;
  for (const BatchItem& item : batch.items) rows += static_cast<int64_t>(item.tokens.size());
  ASSIGN_OR_RETURN(Schedule* const schedule, schedule_for(rows));
  // All room first: a block table must not move once a view points to it.
  for (const BatchItem& item : batch.items) {
    RETURN_IF_ERROR(cache.reserve(item.sequence, static_cast<int64_t>(item.tokens.size())));
  }
  predict(*schedule, rows, batch);
  context.views.fill(batch, cache);
  context.views.cut(schedule->list.cut->blocks, schedule->list.any_rows);
  RETURN_IF_ERROR(run_pass(*schedule, context));
  return collect(*schedule);
}

Result<Logits> Executor::forward(const Batch& batch) {
  State& s = *state_;
  RETURN_IF_ERROR(s.check(batch));
  Result<Logits> logits = s.run(batch);
  if (logits) s.cache.settle_copies();
  for (const BatchItem& item : batch.items) {
    if (logits) {
      s.cache.commit(item.sequence, static_cast<int64_t>(item.tokens.size()));
    } else {
      s.cache.truncate(item.sequence, s.cache.length(item.sequence));  // gives back unused room
    }
  }
  return logits;
}

const std::vector<LostDevice>& Executor::lost_devices() const { return state_->context.lost; }
int64_t Executor::max_rows() const { return state_->max_rows(); }

Work Executor::work(int64_t rows, int64_t depth) const {
  const State& s = *state_;
  const device::KvLayout& layout = s.cache.layout();
  const int64_t token_kv_bytes = 2 * layout.n_layers * layout.n_kv_heads * layout.head_dim *
                                 device::kv_type_bytes(layout.type);
  Work work;
  // Row i of the pass sees depth + i + 1 keys.
  const int64_t keys = rows * depth + rows * (rows + 1) / 2;
  for (size_t i = 0; i < s.graph.ops.size(); ++i) {
    const auto id = static_cast<graph::OpId>(i);
    const graph::Op& op = s.graph.op(id);
    if (op.kind == graph::OpKind::kAttention) {
      work.macs += graph::macs_per_row(s.graph, id, 1) * keys;
      continue;
    }
    const int64_t op_rows = op.stage == graph::Stage::kHead ? 1 : rows;
    work.macs += graph::macs_per_row(s.graph, id, 0) * op_rows;
    if (op.kind != graph::OpKind::kEmbed) work.weight_bytes += graph::weight_bytes(s.graph, id);
  }
  work.kv_bytes = (depth + rows) * token_kv_bytes + rows * token_kv_bytes;
  return work;
}

std::span<const DeviceWork> Executor::device_work() const { return state_->context.work; }
const ControlWork& Executor::control_work() const { return state_->context.control; }
void Executor::forget_predictions() {
  for (auto& schedule : state_->schedules) schedule->predicted_depth = -1;
}

void Executor::reset_work() {
  PassContext& context = state_->context;
  std::fill(context.work.begin(), context.work.end(), DeviceWork{});
  context.control = {};
}
const Trace& Executor::trace() const { return state_->context.trace; }

}  // namespace troika::runtime
