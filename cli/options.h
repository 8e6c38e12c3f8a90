// Groups of flags that several verbs share, and the option structs of the engine they turn into.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "troika/base/result.h"
#include "troika/device/registry/registry.h"
#include "troika/engine/engine.h"
#include "troika/model/hyper_parameters.h"

namespace troika::cli {

// -m, and what llama.cpp's users add about how a file is read.
struct ModelFlags {
  std::string path;
  void declare(Flags& flags);
};

// Where and how the model runs.
struct EngineFlags {
  int64_t threads = 0;  // 0: every core
  int64_t threads_batch = 0;
  int64_t context = -1;  // -1: not given; 0: as the model was trained
  int64_t batch = 2048;
  int64_t ubatch = 512;
  std::string key_type = "f32";
  std::string value_type = "f32";
  std::string devices;  // empty: those of --plan, else cpu
  std::string kernels;
  std::string trace_path;
  std::string plan_path;
  std::string split;
  bool tune = false;
  int64_t tune_seconds = 180;  // for confirming a plan on the devices
  bool no_guard = false;
  std::string activations = "f32";
  bool no_cache = false;
  std::string sync = "queue";
  bool memory = false;

  void declare(Flags& flags);
  // The same without -c, -b, -t, ... that `bench` takes as lists.
  void declare_devices(Flags& flags);
  void declare_tune_budget(Flags& flags);
  // For devices that are tried before they are opened.
  device::OpenOptions open_options() const;
  // Where what is learnt is kept; empty: nowhere.
  std::string cache() const;
  Result<engine::EngineOptions> resolve(const model::HyperParameters& model) const;
};

// The context of a session when -c is not given: the model's, up to this many tokens, so that a
// model trained for 128 Ki does not take gigabytes of KV cache for a short chat.
inline constexpr int64_t kDefaultContextLimit = 8192;

// How the next token is chosen, and when an answer ends.
struct SamplingFlags {
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  double repeat_penalty = 1.0;
  int64_t repeat_last_n = 64;
  int64_t seed = -1;  // -1: a random one
  int64_t predict = -1;
  bool ignore_eos = false;
  bool render_special = false;
  std::vector<std::string> stop;

  void declare(Flags& flags);
  // Draws the seed if none was given.
  Result<engine::GenerateOptions> resolve() const;
};

// Parses "f32" or "f16"; `what` names the flag in the error.
Result<device::KvType> parse_kv_type(std::string_view what, std::string_view name);

// Every core, however the user says it: -1 as llama.cpp's default, 0, or nothing.
inline constexpr IntegerRange kThreadRange{-1, 1024};
// Rows of one pass.
inline constexpr IntegerRange kPassRange{1, 65536};

}  // namespace troika::cli
