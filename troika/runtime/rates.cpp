#include "troika/runtime/rates.h"

#include <algorithm>

#include "troika/device/memory.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {
namespace {

constexpr int kLeastRuns = 2;
constexpr int kMostRuns = 12;

// One device on one layer.
class Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const graph::Graph& layer,
                                               std::span<const std::unique_ptr<device::Device>> one,
                                               int64_t rows, device::SharedPool& pool) {
    device::KvLayout layout;
    layout.n_layers = layer.n_layers;
    layout.n_kv_heads = layer.n_kv_heads;
    layout.head_dim = layer.head_dim;
    layout.n_blocks = rows / device::kKvBlockTokens + 2;
    auto trial = std::unique_ptr<Trial>(new Trial);
    ASSIGN_OR_RETURN(KvCache cache, KvCache::create(layout, rows + 1, pool));
    trial->cache_ = std::make_unique<KvCache>(std::move(cache));
    const plan::Plan plan = plan::single_device_plan(layer, one.front()->info().name, rows, "f32");
    ASSIGN_OR_RETURN(trial->executor_,
                     Executor::create(layer, plan, one, pool, *trial->cache_, {}));
    trial->tokens_.assign(static_cast<size_t>(rows), 0);
    trial->sequence_ = trial->cache_->new_sequence();
    return trial;
  }

  // The shortest of a few passes, after one that warms up.
  Result<Duration> time(int64_t rows, TimePoint until, const Clock& clock) {
    RETURN_IF_ERROR(executor_->prepare(rows));
    Duration best = Duration::max();
    for (int run = 0; run <= kMostRuns; ++run) {
      cache_->truncate(sequence_, 0);
      const TimePoint begin = clock.now();
      RETURN_IF_ERROR(executor_->forward(
          {{{sequence_, std::span(tokens_).first(static_cast<size_t>(rows)), WantLogits::kNone}}}));
      const TimePoint end = clock.now();
      if (run > 0) best = std::min(best, end - begin);
      if (run >= kLeastRuns && end > until) break;
    }
    return std::max(best, Duration(1));
  }

 private:
  Trial() = default;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  std::vector<model::TokenId> tokens_;
  SequenceId sequence_ = 0;
};

}  // namespace

Result<std::vector<plan::DeviceRates>> measure_rates(
    const graph::Graph& graph, std::span<const std::unique_ptr<device::Device>> devices,
    const RatesOptions& options, const Clock& clock) {
  const graph::Graph layer = graph::first_layers(graph, 1);
  device::SharedPool pool;
  std::vector<plan::DeviceRates> rates;
  const Duration each = options.budget / static_cast<int64_t>(2 * devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    ASSIGN_OR_RETURN(const auto trial,
                     Trial::create(layer, devices.subspan(i, 1), options.rows, pool));
    plan::DeviceRates own;
    ASSIGN_OR_RETURN(const Duration many, trial->time(options.rows, clock.now() + each, clock));
    ASSIGN_OR_RETURN(const Duration one, trial->time(1, clock.now() + each, clock));
    own.prefill = static_cast<double>(options.rows) / to_seconds(many);
    own.decode = 1 / to_seconds(one);
    rates.push_back(own);
  }
  return rates;
}

}  // namespace troika::runtime
