// Loads a model with progress and makes an engine of it.
#pragma once

#include <memory>

#include "cli/console.h"
#include "cli/options.h"
#include "troika/base/clock.h"
#include "troika/engine/engine.h"
#include "troika/model/model.h"

namespace troika::cli {

struct LoadedModel {
  model::Model model;
  Duration elapsed{};
  int64_t heap_bytes = 0;  // that it took besides its weights: tokenizer, names, template
};

// The file that is meant, with its weights or without. kCancelled on Ctrl-C.
Result<LoadedModel> load_model(const ModelFlags& flags, bool weights, int64_t threads,
                               Console& console);

// A plan from a file; errors name the file.
Result<plan::Plan> read_plan(const std::string& path);

struct LoadedEngine {
  std::unique_ptr<engine::Engine> engine;
  Duration load_time{};  // reading and checking the file; compiling is engine->compile_time()
  int64_t model_heap_bytes = 0;  // as in LoadedModel
};

// With --tune first plans for the devices, confirms, and keeps that.
// Up to `max_logit_rows` rows of one pass may ask for logits: each takes memory for the vocabulary.
Result<LoadedEngine> load_engine(const ModelFlags& model_flags, const EngineFlags& engine_flags,
                                 Console& console, int64_t max_logit_rows = 1);

// The same by a plan that is given, whatever the flags say of it.
Result<LoadedEngine> load_engine_with(const ModelFlags& model_flags,
                                      const EngineFlags& engine_flags, plan::Plan plan,
                                      Console& console);

// Warns when the context is longer than the model was trained for.
void warn_of_context(const engine::Engine& engine, Console& console);

// Writes the trace if --trace asks for one.
Status save_trace(const engine::Engine& engine, const EngineFlags& flags);

}  // namespace troika::cli
