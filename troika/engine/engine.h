// The engine: a loaded model on opened devices, and sessions that generate text with it.
//
//   ASSIGN_OR_RETURN(auto model, model::Model::load(path));
//   ASSIGN_OR_RETURN(auto engine, Engine::create(std::move(model), options));
//   ASSIGN_OR_RETURN(auto session, engine->new_session());
//   ASSIGN_OR_RETURN(auto answer, session->generate(prompt_ids, generate_options, on_text));
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/device/device.h"
#include "troika/device/kv_layout.h"
#include "troika/device/memory.h"
#include "troika/engine/sampler.h"
#include "troika/model/model.h"
#include "troika/plan/plan.h"
#include "troika/runtime/batch.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/kv_cache.h"

namespace troika::engine {

struct EngineOptions {
  std::string devices = "cpu";  // "cpu", "cpu@0-1"; see device/device_string.h
  int threads = 0;              // cores of all devices together; 0: every core allowed
  int64_t context = 0;          // tokens of one session; 0: as the model was trained
  int64_t batch_rows = 512;     // rows of one forward pass (llama.cpp's -ub)
  int64_t max_logit_rows = 1;   // rows of one pass that may ask for logits
  int64_t max_sequences = 1;
  device::KvType kv_type = device::KvType::kF32;
  std::string kernels;            // name of a cpu kernel table; empty: the fastest
  bool int8_activations = false;  // inputs of products in 8 bits, on devices that can
  bool trace = false;             // keep every task's times
  // Who computes what: a plan made before, else a rule (plan/default_plan.h), else shares by rates
  // that are measured when the engine is made, or remembered from then.
  std::optional<plan::Plan> plan;
  std::string plan_name;  // for errors about it; empty: none
  std::string split;
  bool force_all = false;  // each device gets at least a tenth of every product that is cut
  runtime::Sync sync = runtime::Sync::kQueue;
  Duration patience = std::chrono::seconds(10);         // see runtime::ExecutorOptions
  Duration compile_patience = std::chrono::minutes(3);  // see device::OpenOptions
  std::string cache_folder;  // for what is learnt of devices and rates; empty: nothing is kept
  std::string build;         // names this program in the cache
  std::string graph_folder;  // where devices keep what they compiled; empty: nowhere
  // False: devices are taken as checked before.
  bool check = true;
  // Called before a device other than `cpu` is opened, to find out in another process whether that
  // is safe; an error puts the device aside.
  std::function<Status(const std::string& device)> probe;
  // Asked while devices are measured and prepared, which may take long, and now and then in passes;
  // true: kCancelled, or an answer that is so.
  std::function<bool()> cancelled;
  // A plan that `troika plan` stored for these devices takes the place of shares by rates, if it
  // holds. False: it is not looked for.
  bool stored_plan = true;
  // Told, in one line each, that a stored plan is used, and what was corrected; may be empty.
  std::function<void(const std::string&)> tell;
  // Told of each device that is put aside, in one line; may be empty.
  std::function<void(const std::string&)> warn;
  // Told, in one line each, what may interest who wants to know more; may be empty.
  std::function<void(const std::string&)> note;
};

enum class FinishReason { kStop, kStopString, kLength, kContextFull, kCancelled };
std::string_view to_string(FinishReason reason);  // "stop", "stop", "length", "length", "cancelled"

struct GenerateOptions {
  SamplerOptions sampling;
  int64_t max_tokens = -1;  // -1: until the model stops or the context is full
  bool ignore_eos = false;
  std::vector<std::string> stop;
  int logprobs = 0;             // top entries to keep for each position
  bool render_special = false;  // print the names of special tokens
};

// What a device did in one answer.
struct DeviceUse {
  std::string name;
  int threads = 0;   // threads of this machine that compute for it
  int64_t macs = 0;  // multiply-adds, prefill and decode together
  double share = 0;  // its part of them
  Duration busy{};
  Duration wait{};  // time between its first and last task when it waited for others
  int64_t tasks = 0;
  int64_t joins = 0;  // tasks that had to wait for another device
  Duration join_wait{};
  std::vector<Duration> wake_ups{};  // see runtime::DeviceWork
  Duration cpu{};                    // time on cores of its own threads, polling included
};

// What the calling thread did, in time on a core, and what is left of the process's.
struct ControlUse {
  int64_t passes = 0;
  Duration submit{};         // checks, block tables, queueing
  Duration wait{};           // until passes were done
  Duration sample{};         // choosing tokens
  Duration thread{};         // the whole calling thread: these, text, and what the caller did
  Duration others{};         // threads that are neither the caller's nor counted by a device
  int64_t gather_bytes = 0;  // moved by concatenations that exist only because of cuts

  Duration sum() const { return submit + wait + sample; }
};

struct Answer {
  std::vector<model::TokenId> tokens;  // generated, without the token that ended the answer
  std::string text;
  FinishReason finish_reason = FinishReason::kStop;
  std::vector<std::vector<TokenLogprob>> top_logprobs;  // one list for each generated position
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;       // prompt tokens whose KV was there already
  Duration ttft{};                 // from the call to the first token
  Duration tpot{};                 // (last - first token) / (n - 1); 0 with fewer than two
  double prefill_tok_s = 0;        // prompt tokens computed per second
  double decode_tok_s = 0;         // 0 with fewer than two tokens
  std::vector<DeviceUse> devices;  // that computed for it, also those put aside meanwhile
  ControlUse control;
  Duration elapsed{};  // from the call to the end
};

class Engine;

// One conversation and its KV cache. Not shared between threads; must not outlive its Engine.
class Session {
 public:
  ~Session();

  // Makes `prompt` the session's whole content (the part that it shares with what the session holds
  // already is kept, not computed again) and generates after it. `on_text` gets each new piece of
  // whole UTF-8 text; false ends the answer (kCancelled, which is no error). `cancel` may be set
  // from a signal handler: the answer ends after the running pass. EngineOptions::cancelled ends it
  // in the same way, in the middle of a pass if that is long. kContextFull, with both counts, if
  // the prompt does not fit; then nothing has changed.
  Result<Answer> generate(std::span<const model::TokenId> prompt, const GenerateOptions& options,
                          const std::function<bool(std::string_view)>& on_text = {},
                          const std::atomic<bool>* cancel = nullptr);

  // All tokens whose KV is held.
  std::span<const model::TokenId> tokens() const { return tokens_; }

 private:
  friend class Engine;
  class TextStream;
  struct TokenTimes;

  Session(Engine& engine, runtime::SequenceId sequence);
  // Keeps what `prompt` shares with the session, computes the rest, and gives its last logits.
  Result<std::span<const float>> prefill(std::span<const model::TokenId> prompt,
                                         const std::atomic<bool>* cancel);
  Status check_prompt(std::span<const model::TokenId> prompt) const;
  Status prepare(int64_t rows);
  // Tokens at the beginning of `prompt` whose KV is held and can be kept.
  int64_t shared_with(std::span<const model::TokenId> prompt) const;
  Status decode(std::span<const float> logits, const GenerateOptions& options, TextStream& text,
                const std::atomic<bool>* cancel, Answer& answer, TokenTimes& times);

  Engine& engine_;
  runtime::SequenceId sequence_;
  std::vector<model::TokenId> tokens_;
};

struct NllResult {
  double nll_sum = 0;  // natural log, over `tokens` predicted tokens
  int64_t tokens = 0;
  Duration elapsed{};
};

// Threads: calls on an Engine and its Sessions must not overlap.
class Engine {
 public:
  // `clock` must outlive the engine.
  static Result<std::unique_ptr<Engine>> create(model::Model model, const EngineOptions& options,
                                                const Clock& clock = system_clock());
  ~Engine();

  Result<std::unique_ptr<Session>> new_session();

  // One forward pass over a ragged batch; logits as runtime::Executor::forward gives them. If a
  // device is lost, the pass is done again by those that are left; kDeviceFailed once none is.
  Result<runtime::Logits> forward(const runtime::Batch& batch);
  runtime::KvCache& kv_cache();
  const plan::Plan& plan() const;

  // Negative log-likelihood of ids[1:] given what comes before, in windows of the context: each
  // window starts afresh, and its first token is not predicted.
  Result<NllResult> score(std::span<const model::TokenId> ids,
                          const std::function<bool(int64_t done, int64_t all)>& progress = {});

  // Times for `bench`: `rows` tokens as prefill after `depth` tokens, or `steps` one-token steps.
  // Tokens are pseudo-random; what comes before is computed first and not timed.
  Result<Duration> time_prefill(int64_t rows, int64_t depth);
  Result<Duration> time_decode(int64_t steps, int64_t depth);

  // With a stored plan: the devices' speeds are corrected by what passes showed, and the plan by
  // them, if some device takes 1.3 times as long as others of what was predicted; says so by
  // `tell`. Where shares follow measured rates: new shares by what passes showed since they were
  // made, if enough was seen and they would save more than a fiftieth of decode's or prefill's
  // time; says so by `note`. Compiles, which may take seconds: between answers is the time for it.
  // What was seen in an answer is remembered for the next engine in any case.
  Status balance();

  // Goes on with another plan for the devices that are open, or, without one, with what would be
  // used now: a stored plan, else shares by rates. Compiles.
  Status use_plan(std::optional<plan::Plan> plan);

  // What each device did since this was last called, or since the last answer.
  std::vector<DeviceUse> take_uses();

  const model::Model& model() const;
  const graph::Graph& graph() const;
  const EngineOptions& options() const;  // as they took effect: context and threads filled in
  const std::vector<std::unique_ptr<device::Device>>& devices() const;
  Duration compile_time() const;  // time that create() spent compiling and allocating
  // Multiply-adds and weight bytes of one pass over `rows` rows at `depth` with one row of logits.
  runtime::Work work(int64_t rows, int64_t depth) const;
  // Memory by owner: "weights", "kv cache", "activations", ...
  std::vector<std::pair<std::string, int64_t>> memory() const;
  // The same rows with what is resident of each: looks at every page.
  std::vector<device::PoolShare> resident_memory() const;
  // With the model as title and the plan's reason as description.
  Trace trace() const;

 private:
  friend class PlanTimer;
  friend class Session;
  struct State;
  // What a device that hangs may still write to is put in quarantine.
  struct CloseState {
    void operator()(State* state) const;
  };
  using StatePtr = std::unique_ptr<State, CloseState>;
  explicit Engine(StatePtr state);
  StatePtr state_;
};

}  // namespace troika::engine
