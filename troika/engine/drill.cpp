#include "troika/engine/drill.h"

#include <algorithm>
#include <utility>

namespace troika::engine {
namespace {

struct DrillCase {
  std::string fault;  // as in a device string
  std::string when;
  int warnings = 1;
  std::string says{};  // part of the warning
  // As at a first use of the device; else as if it had been found good before.
  bool check = false;
  bool needs_probe = false;
};

struct Outcome {
  std::vector<model::TokenId> tokens;
  std::vector<std::string> warnings;
  int64_t faulty_tasks = 0;  // of the second device
  int64_t passes = 0;
};

// What is found out by opening, probing and checking, or without them when kernels are compiled. A
// task that never ends, at the check, and an opening that does not return are a probe's to find.
std::vector<DrillCase> load_cases() {
  return {{"open-fails", "load", 1, "refuses", true},
          {"open-hangs", "load", 1, "", true, true},
          {"crash-on-open", "load", 1, "", true, true},
          {"wrong-values", "load", 1, "", true},
          {"nan@1", "load", 1, "NaN", true},
          {"inf@1", "load", 1, "infinite", true},
          {"lost@1", "load", 1, "gone", true},
          {"hang@1", "load", 1, "", true, true},
          {"hang-compile@1", "load", 1, "hangs"},
          {"oom", "load", 1, "memory", true},
          {"slow@3", "load", 0, "", true}};
}

// Faults of a task: one of the prompt's pass, and one of a later pass.
std::vector<DrillCase> task_cases(int64_t tasks_of_a_pass) {
  const int64_t later = 2 * tasks_of_a_pass + 1;
  std::vector<DrillCase> all;
  for (const auto& [name, says] : {std::pair("nan", "NaN"), std::pair("inf", "infinite"),
                                   std::pair("hang", "hangs"), std::pair("lost", "gone")}) {
    all.push_back({fmt::format("{}@2", name), "prefill", 1, says});
    all.push_back({fmt::format("{}@{}", name, later), "answer", 1, says});
  }
  all.push_back({"slow@3", "prefill", 0});
  all.push_back({fmt::format("slow@3-{}", later), "answer", 0});
  return all;
}

// A static device compiles when it is given a prompt of a new length.
std::vector<DrillCase> static_cases(int64_t tasks_of_a_pass) {
  const int64_t later = 2 * tasks_of_a_pass + 1;
  return {{"oom", "prefill", 1, "memory"},
          {"hang-compile@1", "prefill", 1, "hangs"},
          {"nan@2", "prefill", 1, "NaN"},
          {fmt::format("lost@{}", later), "answer", 1, "gone"}};
}

class Drill {
 public:
  Drill(const DrillOptions& options, const std::function<void(const DrillResult&)>& on_result)
      : options_(options), on_result_(on_result) {
    const auto core = [&](size_t i) {
      return options.cores.at(std::min(i, options.cores.size() - 1));
    };
    first_ = fmt::format("cpu@{}", core(0));
    second_ = fmt::format("cpu@{}", core(1));
    static_ = fmt::format("systolic@{}", core(1));
  }

  Result<std::vector<DrillResult>> run() {
    ASSIGN_OR_RETURN(const Outcome reference, answer(first_, true));
    RETURN_IF_ERROR(run_all(load_cases(), second_, reference));
    ASSIGN_OR_RETURN(const int64_t tasks, tasks_of_a_pass(second_));
    RETURN_IF_ERROR(run_all(task_cases(tasks), second_, reference));
    ASSIGN_OR_RETURN(const int64_t static_tasks, tasks_of_a_pass(static_));
    RETURN_IF_ERROR(run_all(static_cases(static_tasks), static_, reference));
    return std::move(results_);
  }

 private:
  std::string devices_with(const std::string& fault, const std::string& device) const {
    return fmt::format("{},faulty:{}:{}", first_, fault, device);
  }

  Result<int64_t> tasks_of_a_pass(const std::string& device) {
    ASSIGN_OR_RETURN(const Outcome healthy, answer(devices_with("slow@1", device), false));
    if (healthy.passes > 0) return healthy.faulty_tasks / healthy.passes;
    return make_error(ErrorCode::kInternal, "the drill's own answer had no pass");
  }

  Status run_all(const std::vector<DrillCase>& cases, const std::string& device,
                 const Outcome& reference) {
    for (const DrillCase& one : cases) {
      if (options_.cancelled && options_.cancelled()) {
        return make_error(ErrorCode::kCancelled, "the drill was interrupted");
      }
      if (one.needs_probe && !options_.probe) continue;
      results_.push_back(judge(one, device, reference));
      on_result_(results_.back());
    }
    return {};
  }

  Result<Outcome> answer(const std::string& devices, bool check) {
    ASSIGN_OR_RETURN(model::Model model, options_.load());
    Outcome outcome;
    EngineOptions engine_options;
    engine_options.devices = devices;
    engine_options.context =
        static_cast<int64_t>(options_.prompt.size()) + options_.answer_tokens + 1;
    engine_options.split = devices.find(',') == std::string::npos ? "" : "paired:50/50";
    engine_options.check = check;
    engine_options.patience = options_.patience;
    engine_options.compile_patience = options_.patience;
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

  DrillResult judge(const DrillCase& one, const std::string& device, const Outcome& reference) {
    DrillResult result;
    result.fault = one.fault;
    result.when = one.when;
    result.device = device;
    result.devices = devices_with(one.fault, device);
    const TimePoint begin = system_clock().now();
    const auto outcome = answer(result.devices, one.check);
    result.took = system_clock().now() - begin;
    if (!outcome) {
      result.outcome = "no answer: " + outcome.error().message;
    } else if (outcome->tokens != reference.tokens) {
      result.outcome = "another answer than the reference's";
    } else if (static_cast<int>(outcome->warnings.size()) != one.warnings) {
      result.outcome =
          fmt::format("{} warnings instead of {}", outcome->warnings.size(), one.warnings);
    } else if (one.warnings > 0 && outcome->warnings.front().find(one.says) == std::string::npos) {
      result.outcome = fmt::format("nothing of \"{}\" in: {}", one.says, outcome->warnings.front());
    } else {
      result.passed = true;
      result.outcome = outcome->warnings.empty() ? "no warning" : outcome->warnings.front();
    }
    return result;
  }

  const DrillOptions& options_;
  const std::function<void(const DrillResult&)>& on_result_;
  std::string first_;
  std::string second_;
  std::string static_;
  std::vector<DrillResult> results_;
};

}  // namespace

Result<std::vector<DrillResult>> run_drill(
    const DrillOptions& options, const std::function<void(const DrillResult&)>& on_result) {
  if (options.cores.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "the drill needs a core");
  }
  return Drill(options, on_result).run();
}

}  // namespace troika::engine
