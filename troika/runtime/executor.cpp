#include "troika/runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "troika/plan/lower.h"

namespace troika::runtime {
namespace {

// The tasks of one bucket of rows, ready to be submitted.
struct Schedule {
  int64_t max_rows = 0;
  plan::TaskList list;
  std::vector<std::unique_ptr<device::Kernel>> kernels;   // by task
  std::vector<std::vector<device::TensorView>> bindings;  // by task
  const float* logits = nullptr;
  int64_t logits_stride = 0;  // floats
};

// The arrays behind a BatchView, reused from pass to pass.
struct BatchArrays {
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> logit_rows;
  std::vector<device::SequenceView> sequences;

  void clear() {
    tokens.clear();
    positions.clear();
    logit_rows.clear();
    sequences.clear();
  }
};

int64_t keys_seen(const BatchArrays& arrays) {
  int64_t keys = 0;
  for (const int32_t position : arrays.positions) keys += position + 1;
  return keys;
}

Status check_devices(const plan::Plan& plan,
                     std::span<const std::unique_ptr<device::Device>> devices) {
  if (plan.devices.size() != devices.size()) {
    return make_error(ErrorCode::kInvalidArgument, "the plan names {} devices, {} are open",
                      plan.devices.size(), devices.size());
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

struct Executor::State {
  const graph::Graph& graph;
  std::span<const std::unique_ptr<device::Device>> devices;
  KvCache& cache;
  ExecutorOptions options;
  std::vector<Schedule> schedules;  // ascending max_rows
  device::SharedBlock activations;
  BatchArrays arrays;
  std::vector<float> packed_logits;  // rows without padding between them
  std::vector<device::Fence> fences;
  std::vector<DeviceWork> work;
  Trace trace;
  int64_t passes = 0;

  Status compile(const plan::Plan& plan, device::SharedPool& pool);
  Status check(const Batch& batch) const;
  Status check_distinct(const Batch& batch) const;
  Status prepare(const Batch& batch);
  Result<Logits> run(const Batch& batch);
  Status submit(const Schedule& schedule, const device::BatchView& view);
  Status wait();
  void account(const Schedule& schedule);
  Result<Logits> collect(const Schedule& schedule);
  const Schedule* schedule_for(int64_t rows) const;
};

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::~Executor() = default;

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
                                             .devices = devices,
                                             .cache = cache,
                                             .options = options,
                                             .schedules = {},
                                             .activations = {},
                                             .arrays = {},
                                             .packed_logits = {},
                                             .fences = {},
                                             .work = std::vector<DeviceWork>(devices.size()),
                                             .trace = {}});
  RETURN_IF_ERROR(state->compile(plan, pool));
  return std::unique_ptr<Executor>(new Executor(std::move(state)));
}

Status Executor::State::compile(const plan::Plan& plan, device::SharedPool& pool) {
  int64_t bytes = 0;
  for (const plan::RowsBucket& bucket : plan.buckets) {
    Schedule schedule;
    schedule.max_rows = bucket.max_rows;
    ASSIGN_OR_RETURN(schedule.list, plan::lower(plan, bucket, graph,
                                                std::min(options.max_logit_rows, bucket.max_rows)));
    bytes = std::max(bytes, schedule.list.memory.bytes);
    schedules.push_back(std::move(schedule));
  }
  ASSIGN_OR_RETURN(activations, pool.allocate("activations", bytes));
  for (Schedule& schedule : schedules) {
    const std::vector<plan::Slot>& slots = schedule.list.memory.slots;
    for (const plan::Task& task : schedule.list.tasks) {
      const auto& device = devices[static_cast<size_t>(task.device)];
      for (const graph::OpId op : task.program.ops) {
        if (device->supports(graph, op)) continue;
        return make_error(ErrorCode::kUnsupported, "device {} cannot compute {} of {}",
                          device->info().name, to_string(graph.op(op).kind), task.name);
      }
      ASSIGN_OR_RETURN(auto kernel, device->compile(task.program));
      schedule.kernels.push_back(std::move(kernel));
      std::vector<device::TensorView> views;
      for (const graph::TensorId tensor : task.program.tensors) {
        const plan::Slot& slot = slots[static_cast<size_t>(tensor)];
        views.push_back({activations.data() + slot.offset, slot.row_stride});
      }
      schedule.bindings.push_back(std::move(views));
    }
    const plan::Slot& logits = slots[static_cast<size_t>(graph.logits)];
    schedule.logits = reinterpret_cast<const float*>(activations.data() + logits.offset);
    schedule.logits_stride = logits.row_stride / static_cast<int64_t>(sizeof(float));
  }
  return {};
}

const Schedule* Executor::State::schedule_for(int64_t rows) const {
  for (const Schedule& schedule : schedules) {
    if (rows <= schedule.max_rows) return &schedule;
  }
  return nullptr;
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
  if (rows == 0 || schedule_for(rows) == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, "a pass has 1 to {} rows, not {}",
                      schedules.back().max_rows, rows);
  }
  if (logit_rows > options.max_logit_rows) {
    return make_error(ErrorCode::kInvalidArgument,
                      "logits of {} rows are wanted, {} at most are given", logit_rows,
                      options.max_logit_rows);
  }
  return check_distinct(batch);
}

Status Executor::State::prepare(const Batch& batch) {
  arrays.clear();
  // All room first: a block table must not move once a view points to it.
  for (const BatchItem& item : batch.items) {
    RETURN_IF_ERROR(cache.reserve(item.sequence, static_cast<int64_t>(item.tokens.size())));
  }
  for (const BatchItem& item : batch.items) {
    const auto first_row = static_cast<int64_t>(arrays.tokens.size());
    const auto n_rows = static_cast<int64_t>(item.tokens.size());
    const int64_t first_position = cache.length(item.sequence);
    arrays.sequences.push_back(
        {first_row, n_rows, first_position, cache.block_table(item.sequence).data()});
    for (int64_t i = 0; i < n_rows; ++i) {
      arrays.tokens.push_back(item.tokens[static_cast<size_t>(i)]);
      arrays.positions.push_back(static_cast<int32_t>(first_position + i));
      const bool wanted =
          item.logits == WantLogits::kAll || (item.logits == WantLogits::kLast && i == n_rows - 1);
      if (wanted) arrays.logit_rows.push_back(static_cast<int32_t>(first_row + i));
    }
  }
  return {};
}

Status Executor::State::submit(const Schedule& schedule, const device::BatchView& view) {
  fences.assign(schedule.list.tasks.size(), {});
  std::vector<device::Fence> waits;
  for (size_t i = 0; i < schedule.list.tasks.size(); ++i) {
    const plan::Task& task = schedule.list.tasks[i];
    if (task.stage == graph::Stage::kHead && view.logit_rows.empty()) continue;
    waits.clear();
    for (const int32_t other : task.waits) waits.push_back(fences[static_cast<size_t>(other)]);
    const device::Bindings bindings{schedule.bindings[i], &view};
    ASSIGN_OR_RETURN(fences[i], devices[static_cast<size_t>(task.device)]->submit(
                                    *schedule.kernels[i], bindings, waits));
  }
  return {};
}

// Every fence, so that nothing of this pass runs on when its arrays are reused; the first error.
Status Executor::State::wait() {
  Status result;
  for (auto fence = fences.rbegin(); fence != fences.rend(); ++fence) {
    const Status done = fence->wait();
    if (!done && result) result = done;
  }
  return result;
}

void Executor::State::account(const Schedule& schedule) {
  const auto rows = static_cast<int64_t>(arrays.tokens.size());
  const auto logit_rows = static_cast<int64_t>(arrays.logit_rows.size());
  const int64_t keys = keys_seen(arrays);
  struct Span {
    TimePoint first = TimePoint::max();
    TimePoint last{};
    Duration busy{};
  };
  std::vector<Span> spans(devices.size());
  for (size_t i = 0; i < fences.size(); ++i) {
    if (fences[i].timeline == nullptr) continue;
    const plan::Task& task = schedule.list.tasks[i];
    const auto index = static_cast<size_t>(task.device);
    const device::TaskTimes times = devices[index]->times(fences[i]);
    const int64_t task_rows = task.stage == graph::Stage::kHead ? logit_rows : rows;
    const int64_t macs = task.macs_per_row * task_rows + task.macs_per_key * keys;
    work[index].macs += macs;
    spans[index].busy += times.end - times.start;
    spans[index].first = std::min(spans[index].first, times.start);
    spans[index].last = std::max(spans[index].last, times.end);
    if (!options.trace) continue;
    TraceEvent event;
    event.name = task.name;
    event.device = devices[index]->info().name;
    event.pass = passes;
    event.layer = task.layer;
    event.rows = task_rows;
    event.bytes = task.weight_bytes + task.activation_bytes_per_row * task_rows;
    event.macs = macs;
    event.queued = times.queued;
    event.start = times.start;
    event.end = times.end;
    trace.events.push_back(std::move(event));
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].busy == Duration::zero()) continue;
    work[i].busy += spans[i].busy;
    work[i].wait += spans[i].last - spans[i].first - spans[i].busy;
  }
}

Result<Logits> Executor::State::collect(const Schedule& schedule) {
  Logits logits;
  logits.rows = static_cast<int64_t>(arrays.logit_rows.size());
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
      return make_error(
          ErrorCode::kInvalidData,
          "{} of {} logits at position {} are NaN or infinite: the model's numbers "
          "overflow or its file is damaged",
          bad, row.size(),
          arrays.positions[static_cast<size_t>(arrays.logit_rows[static_cast<size_t>(i)])]);
    }
  }
  return logits;
}

Result<Logits> Executor::State::run(const Batch& batch) {
  RETURN_IF_ERROR(prepare(batch));
  const Schedule& schedule = *schedule_for(static_cast<int64_t>(arrays.tokens.size()));
  device::BatchView view;
  view.n_rows = static_cast<int64_t>(arrays.tokens.size());
  view.tokens = arrays.tokens;
  view.positions = arrays.positions;
  view.sequences = arrays.sequences;
  view.logit_rows = arrays.logit_rows;
  view.kv = cache.data();
  view.kv_layout = cache.layout();

  const Status submitted = submit(schedule, view);
  const Status waited = wait();
  RETURN_IF_ERROR(submitted);
  RETURN_IF_ERROR(waited);
  account(schedule);
  ++passes;
  return collect(schedule);
}

Result<Logits> Executor::forward(const Batch& batch) {
  State& s = *state_;
  RETURN_IF_ERROR(s.check(batch));
  Result<Logits> logits = s.run(batch);
  for (const BatchItem& item : batch.items) {
    if (logits) {
      s.cache.commit(item.sequence, static_cast<int64_t>(item.tokens.size()));
    } else {
      s.cache.truncate(item.sequence, s.cache.length(item.sequence));  // gives back unused room
    }
  }
  return logits;
}

int64_t Executor::max_rows() const { return state_->schedules.back().max_rows; }

Work Executor::work(int64_t rows, int64_t depth) const {
  const State& s = *state_;
  const device::KvLayout& layout = s.cache.layout();
  const int64_t token_kv_bytes = 2 * layout.n_layers * layout.n_kv_heads * layout.head_dim *
                                 device::kv_type_bytes(layout.type);
  Work work;
  // Row i of the pass sees depth + i + 1 keys.
  const int64_t keys = rows * depth + rows * (rows + 1) / 2;
  for (const plan::Task& task : s.schedules.back().list.tasks) {
    const int64_t task_rows = task.stage == graph::Stage::kHead ? 1 : rows;
    work.macs += task.macs_per_row * task_rows + task.macs_per_key * keys;
    work.weight_bytes += task.weight_bytes;
  }
  work.kv_bytes = (depth + rows) * token_kv_bytes + rows * token_kv_bytes;
  return work;
}

std::span<const DeviceWork> Executor::device_work() const { return state_->work; }
void Executor::reset_device_work() {
  std::fill(state_->work.begin(), state_->work.end(), DeviceWork{});
}
const Trace& Executor::trace() const { return state_->trace; }

}  // namespace troika::runtime
