#include "cli/drill.h"

#include "cli/default_model.h"
#include "cli/device_prober.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/text.h"
#include "troika/base/cores.h"
#include "troika/engine/drill.h"

namespace troika::cli {
namespace {

// A child that is sound answers in a second or two.
constexpr Duration kProbeLimit = std::chrono::seconds(5);

std::string row(const engine::DrillResult& result) {
  return fmt::format("{:<14} {:<11} {:<8} {:<7} {:>6.1f} s  {}\n", result.fault, result.device,
                     result.when, result.passed ? "ok" : "FAILED", to_seconds(result.took),
                     printable(result.outcome));
}

}  // namespace

Status drill(Console& console, bool json) {
  ASSIGN_OR_RETURN(const std::string path, model_path(""));
  engine::DrillOptions options;
  options.load = [path] { return model::Model::load(path, {}); };
  ASSIGN_OR_RETURN(const model::Model model, options.load());
  options.prompt = model.tokenizer().encode("The capital of France is", false);
  options.cores = allowed_cores();
  ProberOptions prober;
  prober.again = true;
  prober.time_limit = kProbeLimit;
  options.probe = [prober](const std::string& device) { return probe_device(device, prober); };
  options.cancelled = [] { return interrupted(); };
  Status written;
  if (!json) {
    RETURN_IF_ERROR(console.print(fmt::format("{:<14} {:<11} {:<8} {:<7} {:>8}  {}\n", "fault",
                                              "of", "when", "answer", "took", "what was said")));
  }
  ASSIGN_OR_RETURN(const auto results,
                   engine::run_drill(options, [&](const engine::DrillResult& result) {
                     if (!json && written) written = console.print(row(result));
                   }));
  RETURN_IF_ERROR(written);
  size_t failed = 0;
  Json rows = Json::array();
  for (const engine::DrillResult& result : results) {
    failed += result.passed ? 0 : 1;
    rows.push_back({{"fault", result.fault},
                    {"when", result.when},
                    {"device", result.device},
                    {"devices", result.devices},
                    {"passed", result.passed},
                    {"outcome", result.outcome},
                    {"took_s", to_seconds(result.took)}});
  }
  if (json) RETURN_IF_ERROR(print_json(console, rows, 2));
  if (failed == 0) return {};
  return make_error(ErrorCode::kDeviceFailed, "{} of {} faults ended an answer or changed it",
                    failed, results.size());
}

}  // namespace troika::cli
