#include "bench/opencl_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch_times.h"
#include "bench/opencl_session.h"
#include "troika/device/conformance/run_case.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/engine/engine.h"

namespace troika::bench {

void conformance(const std::string& device_name) {
  OpenClOptions options;
  options.instance = device_name;
  const auto device = need(open(options));
  int ran = 0;
  int failed = 0;
  int not_run = 0;
  const TimePoint start = system_clock().now();
  for (const std::string& group : device::conformance::groups()) {
    for (const auto& c : device::conformance::cases_of(group, device->info())) {
      const auto outcome = run_case(*device, c);
      if (outcome && !outcome->not_run.empty()) {
        ++not_run;
        continue;
      }
      ++ran;
      if (outcome && outcome->passed()) continue;
      ++failed;
      const std::string why = !outcome ? outcome.error().message
                                       : fmt::format("NMSE {} at {}, bound {}", outcome->nmse,
                                                     outcome->place, outcome->bound);
      std::printf("  FAILED %s %s: %s\n", group.c_str(), c.name.c_str(), why.c_str());
      if (device->lost()) return;
    }
  }
  std::printf("\nconformance: %d of %d cases within their bounds, %d not computed, %.1f s\n",
              ran - failed, ran, not_run, to_seconds(system_clock().now() - start));
}

namespace {

constexpr int64_t kBatch = 32;
constexpr int64_t kPrompt = 512;
constexpr int kTokens = 64;

double seconds_of(const std::function<void()>& body) {
  const TimePoint start = system_clock().now();
  body();
  return to_seconds(system_clock().now() - start);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// A model on one device, and its sequences.
class ModelRun {
 public:
  ModelRun(const std::string& device_name, const std::string& path, double read_gbps)
      : read_gbps_(read_gbps),
        model_(need(model::Model::load(path))),
        graph_(need(graph::build(model_))),
        prompt_(kPrompt, 1) {
    OpenClOptions options;
    options.instance = device_name;
    devices_.push_back(need(open(options)));
    device::KvLayout layout;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = (kPrompt + 256) / 32 + kBatch * 4;
    cache_.emplace(need(runtime::KvCache::create(layout, kPrompt + 256, pool_)));
    const double seconds = seconds_of([&] {
      executor_ = need(runtime::Executor::create(
          graph_, plan::single_device_plan(graph_, devices_[0]->info().name, kPrompt, "f32"),
          devices_, pool_, *cache_, {.max_logit_rows = kBatch}));
    });
    std::printf("\n%s: compiled and uploaded in %.1f s, %.2f GB\n", path.c_str(), seconds,
                static_cast<double>(devices_[0]->stats().own_bytes) / 1e9);
  }

  void prefill();
  void decode();
  void batch();
  void copies() const {
    const device::DeviceStats stats = devices_[0]->stats();
    std::printf("copies %lld, %.1f MB\n", static_cast<long long>(stats.copies),
                static_cast<double>(stats.copy_bytes) / 1e6);
  }

 private:
  void forward(const runtime::Batch& batch) { need(executor_->forward(batch)); }
  // A table of the kernels of one pass.
  void show_kernels(const std::function<void()>& pass);

  LaunchTimes launch_times_;  // before the device, and after it
  double read_gbps_;
  model::Model model_;
  graph::Graph graph_;
  std::vector<model::TokenId> prompt_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  device::SharedPool pool_;
  std::optional<runtime::KvCache> cache_;
  std::unique_ptr<runtime::Executor> executor_;
  runtime::SequenceId one_{};
  double token_ = 0;
};

void ModelRun::show_kernels(const std::function<void()>& pass) {
  launch_times_.start();
  const double seconds = seconds_of(pass);
  launch_times_.stop();
  double all = 0;
  const auto kinds = launch_times_.kinds();
  for (const LaunchTimes::Kind& kind : kinds) {
    const auto count = static_cast<double>(kind.count);
    std::printf("  %-34s %4lld times, %8.1f us each, %6.1f us behind the one before\n",
                kind.name.c_str(), static_cast<long long>(kind.count), kind.us / count,
                kind.gap / count);
    all += kind.us;
  }
  std::printf("  all %.0f us, first to last %.0f us of %.0f us, the longest gap %.1f us\n", all,
              launch_times_.span(), seconds * 1e6, launch_times_.longest_gap());
}

void ModelRun::prefill() {
  one_ = cache_->new_sequence();
  double least = 1e30;
  const auto pass = [&] {
    cache_->truncate(one_, 0);
    forward({{{one_, prompt_, runtime::WantLogits::kLast}}});
  };
  for (int i = 0; i < 4; ++i) least = std::min(least, seconds_of(pass));
  const double flops = 2.0 * static_cast<double>(executor_->work(kPrompt, 0).macs);
  std::printf("prefill %lld: %.1f ms, %.0f tok/s, %.1f TFLOPS\n", static_cast<long long>(kPrompt),
              least * 1e3, kPrompt / least, flops / least * 1e-12);
  show_kernels(pass);
}

void ModelRun::decode() {
  const std::span<const model::TokenId> prompt = prompt_;
  const auto pass = [&] { forward({{{one_, prompt.first(1), runtime::WantLogits::kLast}}}); };
  std::vector<double> times;
  executor_->reset_work();
  for (int i = 0; i < kTokens; ++i) times.push_back(seconds_of(pass));
  token_ = median(times);
  launch_times_.start();
  launch_times_.stop();
  const double begin = to_seconds(system_clock().now());
  pass();
  const double end = to_seconds(system_clock().now());
  std::printf("a token: queued after %.3f ms, of which %.3f ms in the driver; done after %.3f ms\n",
              (launch_times_.last_queued() - begin) * 1e3, launch_times_.driver_seconds() * 1e3,
              (end - begin) * 1e3);
  const runtime::Work work = executor_->work(1, kPrompt);
  const auto bytes = static_cast<double>(work.weight_bytes + work.kv_bytes);
  std::printf("decode at depth %lld: median %.3f ms (least %.3f), %.1f tok/s, %.0f GB/s, %.0f %%\n",
              static_cast<long long>(kPrompt), token_ * 1e3,
              *std::min_element(times.begin(), times.end()) * 1e3, 1 / token_,
              bytes / token_ * 1e-9, 100 * bytes / token_ * 1e-9 / read_gbps_);
  show_kernels(pass);
  const auto launches = static_cast<double>(launch_times_.launches());
  const double ideal = launches * kLaunchUs * 1e-6 + bytes / (read_gbps_ * 1e9);
  std::printf("  %.0f launches: ideal %.3f ms, measured %.2f times that\n", launches, ideal * 1e3,
              token_ / ideal);
}

void ModelRun::batch() {
  cache_->release(one_);
  const std::span<const model::TokenId> prompt = prompt_;
  runtime::Batch batch;
  for (int64_t i = 0; i < kBatch; ++i) {
    batch.items.push_back({cache_->new_sequence(), prompt.first(1), runtime::WantLogits::kLast});
  }
  std::vector<double> times;
  for (int i = 0; i < 16; ++i) times.push_back(seconds_of([&] { forward(batch); }));
  const double step = median(times);
  std::printf("decode of %lld sequences: median %.3f ms, %.1f tok/s, %.2f times one\n",
              static_cast<long long>(kBatch), step * 1e3, kBatch / step, kBatch * token_ / step);
  show_kernels([&] { forward(batch); });
}

}  // namespace

void whole_model(const std::string& device_name, const std::string& path, double read_gbps) {
  ModelRun run(device_name, path, read_gbps);
  run.prefill();
  run.decode();
  run.batch();
  run.copies();
}

}  // namespace troika::bench
