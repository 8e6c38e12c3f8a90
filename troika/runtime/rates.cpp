#include "troika/runtime/rates.h"

#include <algorithm>

#include "troika/device/memory.h"
#include "troika/device/quarantine.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {
namespace {

constexpr int kLeastRuns = 2;
constexpr int kMostRuns = 12;

// Passes over one layer, on some devices.
class Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(
      const graph::Graph& layer, const plan::Plan& plan,
      std::span<const std::unique_ptr<device::Device>> devices, const RatesOptions& options) {
    const int64_t rows = plan.buckets.back().max_rows;
    device::KvLayout layout;
    layout.n_layers = layer.n_layers;
    layout.n_kv_heads = layer.n_kv_heads;
    layout.head_dim = layer.head_dim;
    layout.n_blocks = rows / device::kKvBlockTokens + 2;
    auto trial = std::unique_ptr<Trial>(new Trial);
    trial->devices_ = devices;
    trial->cancelled_ = options.cancelled;
    ASSIGN_OR_RETURN(KvCache cache, KvCache::create(layout, rows + 1, *trial->pool_));
    trial->cache_ = std::make_unique<KvCache>(std::move(cache));
    ExecutorOptions executor_options;
    executor_options.cancelled = options.cancelled;
    ASSIGN_OR_RETURN(trial->executor_, Executor::create(layer, plan, devices, *trial->pool_,
                                                        *trial->cache_, executor_options));
    trial->tokens_.assign(static_cast<size_t>(rows), 0);
    trial->sequence_ = trial->cache_->new_sequence();
    return trial;
  }

  // Multiply-adds per second of each device while it is busy, at best of a few passes after one
  // that warms up; 0 for a device that had nothing to do.
  Result<std::vector<double>> rates(int64_t rows, TimePoint until, const Clock& clock) {
    RETURN_IF_ERROR(executor_->prepare(rows));
    std::vector<double> best(executor_->device_work().size(), 0);
    for (int run = 0; run <= kMostRuns; ++run) {
      if (cancelled_ && cancelled_()) {
        return make_error(ErrorCode::kCancelled, "interrupted while devices were measured");
      }
      cache_->truncate(sequence_, 0);
      executor_->reset_work();
      RETURN_IF_ERROR(executor_->forward(
          {{{sequence_, std::span(tokens_).first(static_cast<size_t>(rows)), WantLogits::kNone}}}));
      for (size_t i = 0; i < best.size() && run > 0; ++i) {
        const DeviceWork& work = executor_->device_work()[i];
        if (work.busy <= Duration::zero()) continue;
        best[i] = std::max(best[i], static_cast<double>(work.macs) / to_seconds(work.busy));
      }
      if (run >= kLeastRuns && clock.now() > until) break;
    }
    return best;
  }

  // A device that hangs may still write to the memory that it was given.
  ~Trial() {
    const bool stuck =
        std::any_of(devices_.begin(), devices_.end(), [](const auto& d) { return d->stuck(); });
    executor_.reset();
    if (!stuck) return;
    device::quarantine(std::shared_ptr<KvCache>(std::move(cache_)));
    device::quarantine(std::shared_ptr<device::SharedPool>(std::move(pool_)));
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

 private:
  Trial() = default;
  std::span<const std::unique_ptr<device::Device>> devices_;
  std::function<bool()> cancelled_;
  std::unique_ptr<device::SharedPool> pool_ = std::make_unique<device::SharedPool>();
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  std::vector<model::TokenId> tokens_;
  SequenceId sequence_ = 0;
};

// A part of a product does not take that part of its time, and devices slow each other down. So
// they are run together on their shares, and their rates taken again from that.
class Refinement {
 public:
  Refinement(const graph::Graph& layer, std::span<const std::unique_ptr<device::Device>> devices,
             const RatesOptions& options, Duration budget, const Clock& clock)
      : layer_(layer), devices_(devices), options_(options), budget_(budget), clock_(clock) {
    for (const auto& device : devices) infos_.push_back(device->info());
  }

  Status refine(int64_t rows, double plan::DeviceRates::*phase,
                std::vector<plan::DeviceRates>& rates) {
    plan::DefaultPlanOptions plan_options;
    plan_options.max_rows = rows;
    const plan::Plan plan = plan::default_plan(layer_, infos_, rates, plan_options);
    ASSIGN_OR_RETURN(const auto trial, Trial::create(layer_, plan, devices_, options_));
    ASSIGN_OR_RETURN(const auto together, trial->rates(rows, clock_.now() + budget_, clock_));
    for (size_t i = 0; i < rates.size(); ++i) {
      if (together[i] > 0) rates[i].*phase = together[i];
    }
    return {};
  }

 private:
  const graph::Graph& layer_;
  std::span<const std::unique_ptr<device::Device>> devices_;
  const RatesOptions& options_;
  Duration budget_;
  const Clock& clock_;
  std::vector<device::DeviceInfo> infos_;
};

}  // namespace

Result<std::vector<plan::DeviceRates>> measure_rates(
    const graph::Graph& graph, std::span<const std::unique_ptr<device::Device>> devices,
    const RatesOptions& options, const Clock& clock) {
  constexpr int kDecodeRefinements = 2;
  const graph::Graph layer = graph::first_layers(graph, 1);
  std::vector<plan::DeviceRates> rates;
  const Duration each = options.budget / static_cast<int64_t>(2 * devices.size() + 4);
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto plan = plan::single_device_plan(layer, devices[i]->info().name, options.rows, "f32");
    ASSIGN_OR_RETURN(const auto trial, Trial::create(layer, plan, devices.subspan(i, 1), options));
    ASSIGN_OR_RETURN(const auto many, trial->rates(options.rows, clock.now() + each, clock));
    ASSIGN_OR_RETURN(const auto one, trial->rates(1, clock.now() + each, clock));
    rates.push_back({std::max(many.front(), 1.0), std::max(one.front(), 1.0)});
  }
  if (devices.size() == 1) return rates;
  Refinement refinement(layer, devices, options, each, clock);
  for (int i = 0; i < kDecodeRefinements; ++i) {
    RETURN_IF_ERROR(refinement.refine(1, &plan::DeviceRates::decode, rates));
  }
  RETURN_IF_ERROR(refinement.refine(2 * options.rows, &plan::DeviceRates::prefill, rates));
  return rates;
}

}  // namespace troika::runtime
