// What an Engine holds; shared by the files that implement it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "troika/device/memory.h"
#include "troika/engine/balance.h"
#include "troika/engine/engine.h"
#include "troika/engine/predictions.h"
#include "troika/engine/stored_plan.h"
#include "troika/graph/graph.h"
#include "troika/plan/default_plan.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/kv_cache.h"

namespace troika::engine {

// Declared so that what is used by others is destroyed after them.
struct Engine::State {
  State(model::Model loaded, const Clock& the_clock) : clock(the_clock), model(std::move(loaded)) {}

  const Clock& clock;

  model::Model model;
  EngineOptions options;
  // As asked for; a plan may allow fewer while it is used.
  int64_t wanted_batch_rows = 0;
  int64_t wanted_logit_rows = 0;
  graph::Graph graph;
  device::SharedPool pool;
  std::vector<std::unique_ptr<device::Device>> devices;
  std::optional<runtime::KvCache> cache;
  plan::Plan plan;
  std::unique_ptr<runtime::Executor> executor;
  Duration compile_time{};
  bool stuck = false;                       // a device that was put aside may still use all of this
  std::function<void()> before_devices_go;  // whoever else has kernels of devices; may be empty
  std::optional<Error> all_gone;            // set once no device is left; there is no executor then
  // By device, in the order in which they were opened: of passes since reset_uses().
  std::vector<DeviceUse> uses;
  ControlUse control;
  std::map<std::string, Duration> cpu_before;  // by device: what is counted already
  Duration process_before{};
  Duration without_core_before{};
  TimePoint uses_begin{};
  Duration thread_before{};
  Trace trace;                                     // of executors that are gone
  std::map<std::string, plan::DeviceRates> rates;  // by name of the device
  bool shares_by_rates = false;                    // some share of the plan follows them
  std::map<std::string, SeenWork> seen;            // by name of the device, since the plan was made
  Tried tried;                                     // what the last new shares were to save
  std::map<std::string, SeenTime> seen_times;      // the same, of what was predicted

  // ---- devices.cpp: devices and the executor that uses them, and what happens when one is lost
  Status open_devices();
  // The plan and its executor, for the devices that are left; devices that fail are put aside.
  Status make_executor();
  // Takes lost devices out, with a warning each. kDeviceFailed if none is left; `cause` if none was
  // lost.
  Status put_lost_aside(const Error& cause);
  // As Executor::forward, on the devices that are left.
  Result<runtime::Logits> forward(const runtime::Batch& batch);
  // Compiles for passes of `rows` rows; the time counts as compile_time.
  Status prepare(int64_t rows);

  // ---- predictions.cpp: a stored plan, and what its profile says of its passes
  std::optional<Predictions> predictions;  // of the stored plan in use
  // The stored plan, if it holds; says so, or why it does not. Nothing if none is kept.
  std::optional<plan::Plan> find_stored_plan();
  void keep_predictions(const StoredPlan& stored, const profile::Profile& here);
  // The stored plan by what passes showed of the devices' speeds.
  Status correct_plan();

  // ---- planning.cpp
  Result<plan::Plan> make_plan();
  Result<plan::Plan> plan_by_rates();
  // Fills `rates` for all devices, if some are not known.
  Status find_rates();
  // Takes into `rates`, and into the store, what passes showed of them.
  void learn_rates();
  // The user's plan and rule, which were for other devices.
  void forget_plan();

  // ---- uses.cpp
  Trace whole_trace() const;
  void retire_executor();
  void reset_uses();
  void collect_uses();
  DeviceUse& use_of(const std::string& name);

  // ---- measure.cpp and engine.cpp
  // What time_prefill() and time_decode() measure with.
  std::optional<runtime::SequenceId> bench_sequence;
  std::vector<model::TokenId> measured_tokens;

  // One pass over `tokens` of `sequence`, in pieces of at most batch_rows.
  Result<runtime::Logits> feed(runtime::SequenceId sequence, std::span<const model::TokenId> tokens,
                               runtime::WantLogits last);
  // Brings the bench sequence to `depth` tokens and gives the `tokens` that follow.
  Result<std::span<const model::TokenId>> prepare_bench(int64_t depth, int64_t tokens);
  // Leaves the blocks of the bench sequence to others.
  void drop_bench();
};

}  // namespace troika::engine
