#include "bench/opencl_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/device/conformance/run_case.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/engine/engine.h"

namespace troika::bench {

using namespace troika::device::opencl;

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

// Tokens per second through the executor, one sequence and `batch` of them.
void whole_model(const std::string& device_name, const std::string& path) {
  const auto model = need(model::Model::load(path));
  const graph::Graph graph = need(graph::build(model));
  OpenClOptions options;
  options.instance = device_name;
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(need(open(options)));
  constexpr int64_t kBatch = 32;
  constexpr int64_t kPrompt = 512;
  constexpr int kTokens = 64;
  device::KvLayout layout;
  layout.n_layers = graph.n_layers;
  layout.n_kv_heads = graph.n_kv_heads;
  layout.head_dim = graph.head_dim;
  layout.n_blocks = (kPrompt + 128) / 32 + kBatch * 4;
  device::SharedPool pool;
  runtime::KvCache cache = need(runtime::KvCache::create(layout, kPrompt + 128, pool));
  const TimePoint begin = system_clock().now();
  const auto executor = need(runtime::Executor::create(
      graph, plan::single_device_plan(graph, devices[0]->info().name, kPrompt, "f32"), devices,
      pool, cache, {.max_logit_rows = kBatch}));
  std::printf("\n%s: compiled and uploaded in %.1f s, %.2f GB\n", path.c_str(),
              to_seconds(system_clock().now() - begin),
              static_cast<double>(devices[0]->stats().own_bytes) / 1e9);
  const std::vector<model::TokenId> tokens(kPrompt, 1);
  const std::span<const model::TokenId> prompt = tokens;
  const runtime::SequenceId one = cache.new_sequence();
  const auto seconds_of = [&](const std::function<void()>& body) {
    const TimePoint start = system_clock().now();
    body();
    return to_seconds(system_clock().now() - start);
  };
  const auto forward = [&](const runtime::Batch& batch) { need(executor->forward(batch)); };
  double prefill = 1e30;
  for (int i = 0; i < 4; ++i) {
    cache.truncate(one, 0);
    prefill = std::min(prefill, seconds_of([&] {
                         forward({{{one, prompt, runtime::WantLogits::kLast}}});
                       }));
  }
  const double flops = 2.0 * static_cast<double>(executor->work(kPrompt, 0).macs);
  std::printf("prefill %lld: %.1f ms, %.0f tok/s, %.1f TFLOPS\n", static_cast<long long>(kPrompt),
              prefill * 1e3, kPrompt / prefill, flops / prefill * 1e-12);
  std::vector<double> times;
  executor->reset_work();
  for (int i = 0; i < kTokens; ++i) {
    times.push_back(seconds_of([&] {
      forward({{{one, prompt.first(1), runtime::WantLogits::kLast}}});
    }));
  }
  std::sort(times.begin(), times.end());
  const double token = times[times.size() / 2];
  const runtime::Work work = executor->work(1, kPrompt);
  std::printf("decode at depth %lld: median %.3f ms (least %.3f), %.1f tok/s, %.0f GB/s\n",
              static_cast<long long>(kPrompt), token * 1e3, times.front() * 1e3, 1 / token,
              static_cast<double>(work.weight_bytes + work.kv_bytes) / token * 1e-9);
  cache.release(one);
  std::vector<runtime::SequenceId> many;
  for (int64_t i = 0; i < kBatch; ++i) many.push_back(cache.new_sequence());
  times.clear();
  for (int i = 0; i < 16; ++i) {
    runtime::Batch batch;
    for (const runtime::SequenceId sequence : many) {
      batch.items.push_back({sequence, prompt.first(1), runtime::WantLogits::kLast});
    }
    times.push_back(seconds_of([&] { forward(batch); }));
  }
  std::sort(times.begin(), times.end());
  const double step = times[times.size() / 2];
  std::printf("decode of %lld sequences: median %.3f ms, %.1f tok/s, %.2f times one\n",
              static_cast<long long>(kBatch), step * 1e3, kBatch / step, kBatch * token / step);
  const device::DeviceStats stats = devices[0]->stats();
  std::printf("copies %lld, %.1f MB\n", static_cast<long long>(stats.copies),
              static_cast<double>(stats.copy_bytes) / 1e6);
}

}  // namespace troika::bench
