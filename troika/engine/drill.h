// Fault drill: breaks a device on purpose, in every way that there is, and where it makes sense at
// load, while it reads a prompt and in the middle of an answer, and sees whether the answer goes
// on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/engine/engine.h"
#include "troika/model/model.h"

namespace troika::engine {

struct DrillOptions {
  std::function<Result<model::Model>()> load;  // a fresh model for each case
  std::vector<model::TokenId> prompt;
  int64_t answer_tokens = 12;
  // See EngineOptions: long enough for a machine that does much else.
  Duration patience = std::chrono::seconds(2);
  std::vector<int> cores;                           // two or one; see base/cores.h
  std::function<Status(const std::string&)> probe;  // as EngineOptions::probe
  std::function<bool()> cancelled;
};

struct DrillResult {
  std::string fault;    // "nan@1"
  std::string when;     // "load", "prefill", "answer"
  std::string device;   // that has the fault: "cpu@1", "systolic"
  std::string devices;  // as given to the engine
  bool passed = false;  // the reference's tokens, and exactly the warnings expected
  std::string outcome;  // the warning, or what went wrong
  Duration took{};
};

// One after the other; `on_result` is called after each. An error only if the reference itself
// cannot be had, or if cancelled.
Result<std::vector<DrillResult>> run_drill(
    const DrillOptions& options, const std::function<void(const DrillResult&)>& on_result);

}  // namespace troika::engine
