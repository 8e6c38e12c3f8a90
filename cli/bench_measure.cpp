#include "cli/bench_measure.h"

#include <algorithm>

#include "cli/interrupt.h"
#include "cli/machine.h"
#include "troika/profile/peak_probe.h"

namespace troika::cli {
namespace {

// Long enough to read that starting the threads together does not show, and little beside a model:
// the probe runs while one is loaded.
constexpr int64_t kProbeBytes = int64_t{96} << 20;

std::string fact(const device::DeviceInfo& info, std::string_view key) {
  for (const auto& [name, value] : info.facts) {
    if (name == key) return value;
  }
  return "";
}

Result<Duration> run_once(engine::Engine& engine, const BenchTest& test) {
  Duration elapsed{};
  if (test.n_prompt > 0) {
    ASSIGN_OR_RETURN(elapsed, engine.time_prefill(test.n_prompt, test.n_depth));
  }
  if (test.n_gen > 0) {
    ASSIGN_OR_RETURN(const Duration decode,
                     engine.time_decode(test.n_gen, test.n_depth + test.n_prompt));
    elapsed += decode;
  }
  return elapsed;
}

// A whole prompt touches every buffer; one step is enough for decode.
Status warm(engine::Engine& engine, const BenchTest& test) {
  const BenchTest once{test.n_prompt, std::min<int64_t>(test.n_gen, 1), test.n_depth};
  ASSIGN_OR_RETURN([[maybe_unused]] const Duration ignored, run_once(engine, once));
  return {};
}

// Several devices show in a second prompt and some steps what shares are right; with new ones all
// is to be warmed again.
Status balance(engine::Engine& engine, const BenchTest& test) {
  constexpr int64_t kSteps = 32;
  const BenchTest shown{test.n_prompt, test.n_gen < kSteps ? 0 : kSteps, test.n_depth};
  ASSIGN_OR_RETURN([[maybe_unused]] const Duration ignored, run_once(engine, shown));
  RETURN_IF_ERROR(engine.balance());
  return warm(engine, test);
}

}  // namespace

Status measure(engine::Engine& engine, const BenchTest& test, int64_t repetitions, bool warm_up,
               BenchRow& row) {
  if (warm_up) {
    RETURN_IF_ERROR(warm(engine, test));
    if (engine.devices().size() > 1) RETURN_IF_ERROR(balance(engine, test));
  }
  static_cast<void>(engine.take_uses());
  const TimePoint begin = system_clock().now();
  for (int64_t i = 0; i < repetitions; ++i) {
    if (interrupted()) {
      return make_error(ErrorCode::kCancelled, "interrupted while measuring {}", test.name());
    }
    ASSIGN_OR_RETURN(const Duration sample, run_once(engine, test));
    row.samples.push_back(sample);
  }
  row.elapsed = system_clock().now() - begin;
  row.uses = engine.take_uses();
  return {};
}

TestWork least_work(const engine::Engine& engine, const BenchTest& test) {
  TestWork total;
  const auto add = [&](int64_t rows, int64_t depth) {
    const runtime::Work work = engine.work(rows, depth);
    total.flops += 2.0 * static_cast<double>(work.macs);
    total.bytes += static_cast<double>(work.weight_bytes) + static_cast<double>(work.kv_bytes);
  };
  const int64_t pass = engine.options().batch_rows;
  for (int64_t done = 0; done < test.n_prompt; done += pass) {
    add(std::min(pass, test.n_prompt - done), test.n_depth + done);
  }
  for (int64_t i = 0; i < test.n_gen; ++i) add(1, test.n_depth + test.n_prompt + i);
  return total;
}

BenchRow describe(const LoadedEngine& loaded, const BenchSetting& setting, const BenchTest& test) {
  const engine::Engine& engine = *loaded.engine;
  const model::Model& model = engine.model();
  BenchRow row;
  row.test = test;
  row.setting = setting;
  row.setting.ubatch = engine.options().batch_rows;
  row.model_type =
      fmt::format("{} {:.2f} M {}", model.hyper_parameters().architecture,
                  static_cast<double>(model.parameter_count()) / 1e6, model.type_name());
  row.model_filename = model.path();
  row.model_size = model.file_bytes();
  row.model_n_params = model.parameter_count();
  for (const auto& device : engine.devices()) row.devices.push_back(device->info().name);
  row.threads = engine.options().threads;
  row.kernels = fact(engine.devices().front()->info(), "kernels");
  row.activations = engine.plan().activations;
  row.test_time = utc_time();
  row.load = loaded.load_time;
  row.compile = engine.compile_time();
  return row;
}

Result<Peak> PeakStore::of(int threads) {
  if (const auto known = peaks_.find(threads); known != peaks_.end()) return known->second;
  Peak peak;
  ASSIGN_OR_RETURN(peak.gflops, profile::measure_fma_gflops(threads, &interrupt_flag()));
  ASSIGN_OR_RETURN(peak.gbps, profile::measure_read_gbps(threads, kProbeBytes, &interrupt_flag()));
  peaks_[threads] = peak;
  return peak;
}

}  // namespace troika::cli
