#include "troika/engine/drill.h"

#include <algorithm>

namespace troika::engine {
namespace {

// Long enough for a machine that does much else.
constexpr Duration kPatience = std::chrono::seconds(3);

struct DrillCase {
  std::string fault;  // as in a device string
  std::string when;
  int warnings = 1;
};

struct Outcome {
  std::vector<model::TokenId> tokens;
  std::vector<std::string> warnings;
  int64_t faulty_tasks = 0;  // of the second device
  int64_t passes = 0;
};

// The faults that are noticed at load, by opening, probing or checking; then those of a task of the
// prompt's pass and of a later one.
std::vector<DrillCase> cases(int64_t tasks_of_a_pass) {
  std::vector<DrillCase> all = {{"open-fails", "load"},    {"open-hangs", "load"},
                                {"crash-on-open", "load"}, {"wrong-values", "load"},
                                {"nan@1", "load"},         {"oom", "load"},
                                {"slow@3", "answer", 0}};
  const int64_t later = 2 * tasks_of_a_pass + 1;
  for (const char* name : {"nan", "inf", "hang", "lost"}) {
    all.push_back({fmt::format("{}@2", name), "prefill"});
    all.push_back({fmt::format("{}@{}", name, later), "answer"});
  }
  return all;
}

class Drill {
 public:
  explicit Drill(const DrillOptions& options) : options_(options) {
    const auto core = [&](size_t i) {
      return options.cores.at(std::min(i, options.cores.size() - 1));
    };
    first_ = fmt::format("cpu@{}", core(0));
    second_ = fmt::format("cpu@{}", core(1));
  }

  Result<std::vector<DrillResult>> run(const std::function<void(const DrillResult&)>& on_result) {
    ASSIGN_OR_RETURN(const Outcome reference, answer(first_, true));
    ASSIGN_OR_RETURN(const Outcome healthy, answer(devices_with("slow@1"), false));
    if (healthy.passes == 0) {
      return make_error(ErrorCode::kInternal, "the drill's own answer had no pass");
    }
    std::vector<DrillResult> results;
    for (const DrillCase& one : cases(healthy.faulty_tasks / healthy.passes)) {
      if (options_.cancelled && options_.cancelled()) {
        return make_error(ErrorCode::kCancelled, "the drill was interrupted");
      }
      // Opening that hangs or ends the process is a probe's to find out.
      const bool needs_probe = one.fault == "open-hangs" || one.fault == "crash-on-open";
      if (needs_probe && !options_.probe) continue;
      results.push_back(judge(one, reference));
      on_result(results.back());
    }
    return results;
  }

 private:
  std::string devices_with(const std::string& fault) const {
    return fmt::format("{},faulty:{}:{}", first_, fault, second_);
  }

  // `check`: as at a first use; else as if the device had been found good before.
  Result<Outcome> answer(const std::string& devices, bool check) {
    ASSIGN_OR_RETURN(model::Model model, options_.load());
    Outcome outcome;
    EngineOptions engine_options;
    engine_options.devices = devices;
    engine_options.context =
        static_cast<int64_t>(options_.prompt.size()) + options_.answer_tokens + 1;
    engine_options.split = devices.find(',') == std::string::npos ? "" : "paired:50/50";
    engine_options.check = check;
    engine_options.patience = kPatience;
    if (check) engine_options.probe = options_.probe;
    engine_options.warn = [&](const std::string& line) { outcome.warnings.push_back(line); };
    ASSIGN_OR_RETURN(const auto engine, Engine::create(std::move(model), engine_options));
    ASSIGN_OR_RETURN(const auto session, engine->new_session());
    GenerateOptions generate;
    generate.sampling.temperature = 0;
    generate.ignore_eos = true;
    generate.max_tokens = options_.answer_tokens;
    ASSIGN_OR_RETURN(const Answer given, session->generate(options_.prompt, generate));
    outcome.tokens = given.tokens;
    outcome.passes = given.control.passes;
    if (given.devices.size() > 1) outcome.faulty_tasks = given.devices[1].tasks;
    return outcome;
  }

  DrillResult judge(const DrillCase& one, const Outcome& reference) {
    DrillResult result;
    result.fault = one.fault;
    result.when = one.when;
    result.devices = devices_with(one.fault);
    const TimePoint begin = system_clock().now();
    const auto outcome = answer(result.devices, one.when == "load");
    result.took = system_clock().now() - begin;
    if (!outcome) {
      result.outcome = "no answer: " + outcome.error().message;
    } else if (outcome->tokens != reference.tokens) {
      result.outcome = "another answer than the reference's";
    } else if (static_cast<int>(outcome->warnings.size()) != one.warnings) {
      result.outcome =
          fmt::format("{} warnings instead of {}", outcome->warnings.size(), one.warnings);
    } else {
      result.passed = true;
      result.outcome = outcome->warnings.empty() ? "no warning" : outcome->warnings.front();
    }
    return result;
  }

  const DrillOptions& options_;
  std::string first_;
  std::string second_;
};

}  // namespace

Result<std::vector<DrillResult>> run_drill(
    const DrillOptions& options, const std::function<void(const DrillResult&)>& on_result) {
  if (options.cores.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "the drill needs a core");
  }
  return Drill(options).run(on_result);
}

}  // namespace troika::engine
