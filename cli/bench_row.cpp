#include "cli/bench_row.h"

#include <cmath>

#include "cli/answer_report.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/version.h"
#include "troika/base/cpu_name.h"

namespace troika::cli {
namespace {

std::vector<double> nanoseconds(const BenchRow& row) {
  std::vector<double> values;
  for (const Duration sample : row.samples) {
    values.push_back(static_cast<double>(sample.count()));
  }
  return values;
}

}  // namespace

Statistics statistics(const std::vector<double>& samples) {
  Statistics result;
  if (samples.empty()) return result;
  const auto n = static_cast<double>(samples.size());
  for (const double sample : samples) result.mean += sample / n;
  if (samples.size() < 2) return result;
  double squares = 0;
  for (const double sample : samples) {
    squares += (sample - result.mean) * (sample - result.mean);
  }
  result.stddev = std::sqrt(squares / (n - 1));
  return result;
}

std::vector<double> BenchRow::tokens_per_second() const {
  std::vector<double> values;
  const auto tokens = static_cast<double>(test.n_prompt + test.n_gen);
  for (const double ns : nanoseconds(*this)) values.push_back(ns > 0 ? 1e9 * tokens / ns : 0);
  return values;
}

double BenchRow::gflops() const {
  const double ns = statistics(nanoseconds(*this)).mean;
  return ns > 0 ? work.flops / ns : 0;
}

double BenchRow::gbps() const {
  const double ns = statistics(nanoseconds(*this)).mean;
  return ns > 0 ? work.bytes / ns : 0;
}

double BenchRow::share_of_peak() const {
  const double best = bound_by_arithmetic() ? peak.gflops : peak.gbps;
  if (best <= 0) return 0;
  return (bound_by_arithmetic() ? gflops() : gbps()) / best;
}

Json to_json(const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_second();
  const std::vector<double> times = nanoseconds(row);
  const Statistics speed = statistics(speeds);
  const Statistics time = statistics(times);
  Json samples_ns = Json::array();
  for (const Duration sample : row.samples) samples_ns.push_back(sample.count());
  Json uses = Json::array();
  for (const engine::DeviceUse& use : row.uses) uses.push_back(use_json(use, row.elapsed));
  return {{"test", row.test.name()},
          {"avg_ts", speed.mean},
          {"stddev_ts", speed.stddev},
          {"samples_ts", speeds},
          {"avg_ns", std::llround(time.mean)},
          {"stddev_ns", std::llround(time.stddev)},
          {"samples_ns", samples_ns},
          {"n_prompt", row.test.n_prompt},
          {"n_gen", row.test.n_gen},
          {"n_depth", row.test.n_depth},
          {"n_threads", row.threads},
          {"threads", row.threads},
          {"devices", row.devices},
          {"device_uses", uses},
          {"kernels", row.kernels},
          {"activations", row.activations},
          {"kv_type", std::string(device::to_string(row.setting.kv_type))},
          {"n_ubatch", row.setting.ubatch},
          {"model_type", row.model_type},
          {"model_size", row.model_size},
          {"model_n_params", row.model_n_params},
          {"model_filename", row.model_filename},
          {"gflops", row.gflops()},
          {"gbps", row.gbps()},
          {"peak_gflops", row.peak.gflops},
          {"peak_gbps", row.peak.gbps},
          {"bound_by", row.bound_by_arithmetic() ? "gflops" : "gbps"},
          {"share_of_peak", row.share_of_peak()},
          {"load_ms", to_ms(row.load)},
          {"compile_ms", to_ms(row.compile)},
          {"build_commit", build_commit()},
          {"build_version", version()},
          {"compiler", compiler()},
          {"cpu_info", cpu_name()},
          {"clock_governor", clock_governor()},
          {"power_profile", power_profile()},
          {"test_time", row.test_time}};
}

}  // namespace troika::cli
