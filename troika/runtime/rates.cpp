#include "troika/runtime/rates.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "troika/base/median.h"
#include "troika/device/memory.h"
#include "troika/device/quarantine.h"
#include "troika/plan/give_to_others.h"
#include "troika/plan/product_ranges.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {
namespace {

constexpr int kLeastRuns = 2;  // if there is time for them
constexpr int kMostRuns = 200;
// Weights of a pass of one row that do not stay in a cache from pass to pass, as those of a model
// do not.
constexpr int64_t kStreamedBytes = int64_t{48} << 20;
constexpr int64_t kLeastLayers = 2;

using Devices = std::span<const std::unique_ptr<device::Device>>;

// The plan without what its devices cannot compute of the graph; others do it.
Status leave_to_others(plan::Plan& plan, const graph::Graph& graph, Devices devices) {
  const auto lines = plan::give_to_others(plan, graph, [&](size_t device, graph::OpId op) {
    return devices[device]->supports(graph, op);
  });
  if (!lines) return tl::unexpected<Error>(lines.error());
  return {};
}

bool computes_all(const graph::Graph& graph, const device::Device& device) {
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    if (!device.supports(graph, static_cast<graph::OpId>(op))) return false;
  }
  return true;
}

double rate(int64_t macs, Duration busy) {
  return busy > Duration::zero() ? static_cast<double>(macs) / to_seconds(busy) : 0;
}

// Layers that together with the head hold so many weights, if there are as many.
graph::Graph streamed_layers(const graph::Graph& graph) {
  std::vector<int64_t> of_layer(static_cast<size_t>(graph.n_layers), 0);
  int64_t bytes = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const graph::Op& op = graph.ops[i];
    if (op.kind != graph::OpKind::kMatMul) continue;
    const int64_t weights = graph::weight_bytes(graph, static_cast<graph::OpId>(i));
    (op.layer < 0 ? bytes : of_layer[static_cast<size_t>(op.layer)]) += weights;
  }
  int64_t layers = 0;
  while (layers < graph.n_layers && (layers < kLeastLayers || bytes < kStreamedBytes)) {
    bytes += of_layer[static_cast<size_t>(layers++)];
  }
  return graph::first_layers(graph, layers);
}

// Passes over one layer, on some devices.
class Trial {
 public:
  static Result<std::unique_ptr<Trial>> create(const graph::Graph& layer, const plan::Plan& plan,
                                               Devices devices, const RatesOptions& options,
                                               int64_t held = 0) {
    const int64_t rows = plan.buckets.back().max_rows;
    device::KvLayout layout;
    layout.n_layers = layer.n_layers;
    layout.n_kv_heads = layer.n_kv_heads;
    layout.head_dim = layer.head_dim;
    layout.n_blocks = (held + rows) / device::kKvBlockTokens + 2;
    auto trial = std::unique_ptr<Trial>(new Trial);
    trial->devices_ = devices;
    trial->cancelled_ = options.cancelled;
    ASSIGN_OR_RETURN(KvCache cache, KvCache::create(layout, held + rows + 1, *trial->pool_));
    trial->cache_ = std::make_unique<KvCache>(std::move(cache));
    ExecutorOptions executor_options;
    executor_options.cancelled = options.cancelled;
    ASSIGN_OR_RETURN(trial->executor_, Executor::create(layer, plan, devices, *trial->pool_,
                                                        *trial->cache_, executor_options));
    trial->tokens_.assign(static_cast<size_t>(rows), 0);
    trial->sequence_ = trial->cache_->new_sequence();
    trial->held_ = held;
    if (held == 0) return trial;
    std::memset(trial->cache_->data(), 0, static_cast<size_t>(layout.total_bytes()));
    RETURN_IF_ERROR(trial->cache_->reserve(trial->sequence_, held));
    trial->cache_->commit(trial->sequence_, held);
    return trial;
  }

  // Calls `note` after each of a few passes, but for one that warms up, unless it alone takes all
  // of the time.
  Status run(int64_t rows, WantLogits logits, TimePoint until, const Clock& clock,
             const std::function<void(std::span<const DeviceWork>)>& note) {
    RETURN_IF_ERROR(executor_->prepare(rows));
    const TimePoint begin = clock.now();
    for (int run = 0; run <= kMostRuns; ++run) {
      if (cancelled_ && cancelled_()) {
        return make_error(ErrorCode::kCancelled, "interrupted while devices were measured");
      }
      cache_->truncate(sequence_, held_);
      executor_->reset_work();
      RETURN_IF_ERROR(executor_->forward(
          {{{sequence_, std::span(tokens_).first(static_cast<size_t>(rows)), logits}}}));
      const Duration over = clock.now() - until;
      const bool is_late = over > Duration::zero();
      const bool is_slow = over > until - begin;
      if (run > 0 || is_slow) note(executor_->device_work());
      if (is_slow || (is_late && run >= kLeastRuns)) break;
    }
    return {};
  }

  // Multiply-adds per second of each device while it is busy, at best; 0 for a device that had
  // nothing to do.
  Result<std::vector<double>> rates(int64_t rows, TimePoint until, const Clock& clock) {
    std::vector<double> best(executor_->device_work().size(), 0);
    RETURN_IF_ERROR(run(rows, WantLogits::kNone, until, clock, [&](const auto& work) {
      for (size_t i = 0; i < best.size(); ++i) {
        best[i] = std::max(best[i], rate(work[i].macs, work[i].busy));
      }
    }));
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
  Devices devices_;
  std::function<bool()> cancelled_;
  std::unique_ptr<device::SharedPool> pool_ = std::make_unique<device::SharedPool>();
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  std::vector<model::TokenId> tokens_;
  SequenceId sequence_ = 0;
  int64_t held_ = 0;  // tokens of zeros before those that are measured
};

// A part of a product does not take that part of its time, and devices slow each other down. So
// they are run together on their shares, and their rates taken again from that.
class Refinement {
 public:
  Refinement(Devices devices, const RatesOptions& options, const Clock& clock)
      : devices_(devices), options_(options), clock_(clock) {
    for (const auto& device : devices) infos_.push_back(device->info());
  }

  Status prefill(const graph::Graph& layer, int64_t rows, Duration budget,
                 std::vector<plan::DeviceRates>& rates) {
    ASSIGN_OR_RETURN(const auto trial, make_trial(layer, rows, rates, 0));
    ASSIGN_OR_RETURN(const auto together, trial->rates(rows, clock_.now() + budget, clock_));
    for (size_t i = 0; i < rates.size(); ++i) {
      if (together[i] > 0) rates[i].prefill = together[i];
    }
    return {};
  }

  // What starts late or ends late keeps the others waiting at every join: each part is balanced by
  // itself, by the middle of several passes, in which devices had the machine's same moods.
  Status decode(const graph::Graph& layers, Duration budget,
                std::vector<plan::DeviceRates>& rates) {
    // What lies in a device's own memory cannot be filled from here.
    const bool shared = std::all_of(infos_.begin(), infos_.end(),
                                    [](const auto& info) { return info.unified_memory; });
    ASSIGN_OR_RETURN(const auto trial,
                     make_trial(layers, 1, rates, shared ? plan::kUsualDepth : 0));
    std::vector<std::array<std::vector<double>, kWorkParts>> seen(rates.size());
    RETURN_IF_ERROR(
        trial->run(1, WantLogits::kLast, clock_.now() + budget, clock_, [&](const auto& work) {
          for (size_t i = 0; i < seen.size(); ++i) {
            for (size_t part = 0; part < kWorkParts; ++part) {
              const PartWork& did = work[i].decode[part];
              if (did.macs > 0) seen[i][part].push_back(rate(did.macs, did.busy));
            }
          }
        }));
    for (size_t i = 0; i < rates.size(); ++i) {
      const auto take = [&](WorkPart part, double plan::DeviceRates::*slot) {
        const double together = median(std::move(seen[i][static_cast<size_t>(part)]));
        if (together > 0) rates[i].*slot = together;
      };
      take(WorkPart::kAttention, &plan::DeviceRates::attention);
      take(WorkPart::kMlp, &plan::DeviceRates::mlp);
      take(WorkPart::kHead, &plan::DeviceRates::head);
    }
    return {};
  }

 private:
  Result<std::unique_ptr<Trial>> make_trial(const graph::Graph& graph, int64_t rows,
                                            const std::vector<plan::DeviceRates>& rates,
                                            int64_t held) const {
    plan::DefaultPlanOptions plan_options;
    plan_options.max_rows = rows;
    plan::Plan plan = plan::default_plan(graph, infos_, rates, plan_options);
    RETURN_IF_ERROR(leave_to_others(plan, graph, devices_));
    return Trial::create(graph, plan, devices_, options_, held);
  }

  Devices devices_;
  const RatesOptions& options_;
  const Clock& clock_;
  std::vector<device::DeviceInfo> infos_;
};

// What a device that was not measured alone begins with, beside the others: theirs at least.
plan::DeviceRates slowest(const std::vector<plan::DeviceRates>& rates) {
  plan::DeviceRates least;
  for (const plan::DeviceRates& one : rates) {
    if (one.prefill > 0 && (least.prefill == 0 || one.prefill < least.prefill)) least = one;
  }
  return least.prefill > 0 ? least : plan::DeviceRates{1, 1, 1, 1, 1};
}

}  // namespace

Result<std::vector<plan::DeviceRates>> measure_rates(
    const graph::Graph& graph, std::span<const std::unique_ptr<device::Device>> devices,
    const RatesOptions& options, const Clock& clock) {
  constexpr int kDecodeRefinements = 2;
  // Parts of the budget: a decode's is longer, for the speed of a core may change every few
  // milliseconds.
  constexpr int kDecodeParts = 4;
  constexpr int kPrefillParts = 2;
  const graph::Graph layer = graph::first_layers(graph, 1);
  std::vector<plan::DeviceRates> rates;
  const Duration each = options.budget / (2 * std::ssize(devices) +
                                          kDecodeRefinements * kDecodeParts + kPrefillParts);
  std::vector<size_t> unable;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices.size() > 1 && !computes_all(layer, *devices[i])) {
      unable.push_back(i);
      rates.emplace_back();
      continue;
    }
    const auto plan = plan::single_device_plan(layer, devices[i]->info().name, options.rows, "f32");
    ASSIGN_OR_RETURN(const auto trial, Trial::create(layer, plan, devices.subspan(i, 1), options));
    ASSIGN_OR_RETURN(const auto many, trial->rates(options.rows, clock.now() + each, clock));
    ASSIGN_OR_RETURN(const auto one, trial->rates(1, clock.now() + each, clock));
    const double alone = std::max(one.front(), 1.0);
    rates.push_back({std::max(many.front(), 1.0), alone, alone, alone, alone});
  }
  if (devices.size() == 1) return rates;
  for (const size_t i : unable) rates[i] = slowest(rates);
  Refinement refinement(devices, options, clock);
  const graph::Graph layers = streamed_layers(graph);
  for (int i = 0; i < kDecodeRefinements; ++i) {
    RETURN_IF_ERROR(refinement.decode(layers, kDecodeParts * each, rates));
  }
  RETURN_IF_ERROR(refinement.prefill(layer, 2 * options.rows, kPrefillParts * each, rates));
  return rates;
}

}  // namespace troika::runtime
