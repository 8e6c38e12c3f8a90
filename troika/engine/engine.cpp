#include "troika/engine/engine.h"

#include <unistd.h>

#include <algorithm>

#include "troika/base/resident.h"
#include "troika/device/quarantine.h"
#include "troika/engine/engine_state.h"

namespace troika::engine {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 27;
constexpr int64_t kMaxBatchRows = int64_t{1} << 16;
constexpr int64_t kMaxSequences = int64_t{1} << 16;

int64_t physical_memory_bytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Status check(const EngineOptions& options) {
  if (options.context < 1 || options.context > kMaxContext) {
    return make_error(ErrorCode::kInvalidArgument, "a context of {} tokens: use 1 to {}",
                      options.context, kMaxContext);
  }
  if (options.batch_rows < 1 || options.batch_rows > kMaxBatchRows) {
    return make_error(ErrorCode::kInvalidArgument, "a batch of {} rows: use 1 to {}",
                      options.batch_rows, kMaxBatchRows);
  }
  if (options.max_sequences < 1 || options.max_sequences > kMaxSequences) {
    return make_error(ErrorCode::kInvalidArgument, "{} sequences: use 1 to {}",
                      options.max_sequences, kMaxSequences);
  }
  if (options.max_logit_rows < 1) {
    return make_error(ErrorCode::kInvalidArgument, "{} rows of logits: use 1 or more",
                      options.max_logit_rows);
  }
  if (options.threads < 0) {
    return make_error(ErrorCode::kInvalidArgument, "{} threads: use 1 or more, or 0 for all cores",
                      options.threads);
  }
  return {};
}

// Whether a plan that was given is for this model.
Status check_plan(const EngineOptions& options, const graph::Graph& graph) {
  if (!options.plan) return {};
  Status checked = plan::check(*options.plan, graph);
  if (checked || options.plan_name.empty()) return checked;
  return make_error(checked.error().code, "{}: {}", options.plan_name, checked.error().message);
}

// Within the window, attention to all tokens is attention to those of the window.
Status check_window(const model::HyperParameters& model, int64_t context) {
  if (model.sliding_window == 0 || context <= model.sliding_window) return {};
  return make_error(ErrorCode::kUnsupported,
                    "a context of {} tokens is longer than the model's attention window of {}, and "
                    "sliding it is not supported: use -c {} or less",
                    context, model.sliding_window, model.sliding_window);
}

Result<device::KvLayout> kv_layout(const graph::Graph& graph, const EngineOptions& options) {
  device::KvLayout layout;
  layout.type = options.kv_type;
  layout.n_layers = graph.n_layers;
  layout.n_kv_heads = graph.n_kv_heads;
  layout.head_dim = graph.head_dim;
  const int64_t per_sequence =
      (options.context + device::kKvBlockTokens - 1) / device::kKvBlockTokens;
  layout.n_blocks = per_sequence * options.max_sequences;
  // In floating point first: the product may not fit an integer.
  const double bytes =
      2.0 * static_cast<double>(layout.n_layers * layout.n_kv_heads) *
      static_cast<double>(layout.n_blocks) *
      static_cast<double>(layout.block_elements() * device::kv_type_bytes(layout.type));
  const auto memory = static_cast<double>(physical_memory_bytes());
  if (bytes > memory || layout.n_blocks > INT32_MAX) {
    return make_error(ErrorCode::kOutOfMemory,
                      "the KV cache for a context of {} tokens needs {:.1f} GB, this machine has "
                      "{:.1f} GB: use a smaller -c or -ctk f16",
                      options.context, bytes / 1e9, memory / 1e9);
  }
  return layout;
}

}  // namespace

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kLength:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

void Engine::CloseState::operator()(State* state) const {
  const bool stuck =
      state->stuck || std::any_of(state->devices.begin(), state->devices.end(),
                                  [](const auto& device) { return device->stuck(); });
  std::shared_ptr<State> closed(state);
  if (stuck) device::quarantine(std::move(closed));
}

Engine::Engine(StatePtr state) : state_(std::move(state)) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(model::Model model, const EngineOptions& options,
                                               const Clock& clock) {
  const TimePoint start = clock.now();
  StatePtr state(new State(std::move(model), clock));
  State& s = *state;
  s.options = options;
  if (s.options.context == 0) s.options.context = s.model.hyper_parameters().n_ctx_train;
  RETURN_IF_ERROR(check(s.options));
  RETURN_IF_ERROR(check_window(s.model.hyper_parameters(), s.options.context));
  // A pass is never longer than the context.
  s.options.batch_rows =
      std::min(s.options.batch_rows, s.options.context * s.options.max_sequences);
  s.options.max_logit_rows = std::min(s.options.max_logit_rows, s.options.batch_rows);
  s.wanted_batch_rows = s.options.batch_rows;
  s.wanted_logit_rows = s.options.max_logit_rows;

  ASSIGN_OR_RETURN(s.graph, graph::build(s.model));
  RETURN_IF_ERROR(check_plan(s.options, s.graph));
  RETURN_IF_ERROR(s.open_devices());
  ASSIGN_OR_RETURN(const device::KvLayout layout, kv_layout(s.graph, s.options));
  ASSIGN_OR_RETURN(runtime::KvCache cache,
                   runtime::KvCache::create(layout, s.options.context, s.pool));
  s.cache.emplace(std::move(cache));
  RETURN_IF_ERROR(s.make_executor());
  s.compile_time = clock.now() - start;
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Result<runtime::Logits> Engine::State::feed(runtime::SequenceId sequence,
                                            std::span<const model::TokenId> tokens,
                                            runtime::WantLogits last) {
  runtime::Logits logits;
  const auto piece = static_cast<size_t>(options.batch_rows);
  for (size_t begin = 0; begin < tokens.size(); begin += piece) {
    const size_t count = std::min(piece, tokens.size() - begin);
    const bool is_last = begin + count == tokens.size();
    runtime::BatchItem item;
    item.sequence = sequence;
    item.tokens = tokens.subspan(begin, count);
    item.logits = is_last ? last : runtime::WantLogits::kNone;
    ASSIGN_OR_RETURN(logits, forward({{item}}));
  }
  return logits;
}

void Engine::State::drop_bench() {
  if (bench_sequence) cache->truncate(*bench_sequence, 0);
}

Result<std::unique_ptr<Session>> Engine::new_session() {
  return std::unique_ptr<Session>(new Session(*this, state_->cache->new_sequence()));
}

Result<runtime::Logits> Engine::forward(const runtime::Batch& batch) {
  return state_->forward(batch);
}

std::vector<DeviceUse> Engine::take_uses() {
  state_->collect_uses();
  std::vector<DeviceUse> uses = std::move(state_->uses);
  state_->reset_uses();
  return uses;
}

Status Engine::use_plan(std::optional<plan::Plan> plan) {
  State& s = *state_;
  if (plan) RETURN_IF_ERROR(plan::check(*plan, s.graph));
  s.retire_executor();
  s.predictions.reset();
  s.options.plan = std::move(plan);
  return s.make_executor();
}

runtime::KvCache& Engine::kv_cache() { return *state_->cache; }
const plan::Plan& Engine::plan() const { return state_->plan; }
const graph::Graph& Engine::graph() const { return state_->graph; }
const model::Model& Engine::model() const { return state_->model; }
const EngineOptions& Engine::options() const { return state_->options; }
const std::vector<std::unique_ptr<device::Device>>& Engine::devices() const {
  return state_->devices;
}
Duration Engine::compile_time() const { return state_->compile_time; }
runtime::Work Engine::work(int64_t rows, int64_t depth) const {
  return state_->executor ? state_->executor->work(rows, depth) : runtime::Work{};
}
Trace Engine::trace() const {
  Trace trace = state_->whole_trace();
  const std::string& name = state_->model.hyper_parameters().name;
  trace.title =
      fmt::format("{}, {}", name.empty() ? "unnamed model" : name, state_->model.type_name());
  trace.description = state_->plan.reason;
  return trace;
}

std::vector<std::pair<std::string, int64_t>> Engine::memory() const {
  int64_t weights = 0;
  for (const model::Weight& weight : state_->model.weights()) weights += weight.bytes();
  std::vector<std::pair<std::string, int64_t>> rows = {{"weights", weights}};
  for (auto& row : state_->pool.usage()) rows.push_back(std::move(row));
  return rows;
}

std::vector<device::PoolShare> Engine::resident_memory() const {
  device::PoolShare weights{"weights", 0, 0};
  for (const model::Weight& weight : state_->model.weights()) {
    const int64_t resident = resident_bytes(weight.data, weight.bytes());
    weights.reserved += weight.bytes();
    weights.resident = weights.resident < 0 || resident < 0 ? -1 : weights.resident + resident;
  }
  std::vector<device::PoolShare> rows = {std::move(weights)};
  for (auto& share : state_->pool.shares()) rows.push_back(std::move(share));
  return rows;
}

}  // namespace troika::engine
