#include "troika/forecast/sweep.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace troika::forecast {
namespace {

class Sweep {
 public:
  Sweep(std::span<const SweepChip> chips, std::span<const SweepModel> models,
        std::span<const SweepCase> cases, const SweepOptions& options, const SweepRow& row)
      : models_(models), cases_(cases), options_(options), row_(row) {
    for (const SweepChip& chip : chips) costs_.emplace_back(chip.soc);
  }

  Status run() {
    const size_t n = std::clamp<size_t>(options_.threads, 1, std::max<size_t>(1, cases_.size()));
    std::vector<std::thread> others;
    for (size_t i = 1; i < n; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& other : others) other.join();
    return std::move(result_);
  }

 private:
  bool stopped() const {
    return failed_.load() || (options_.stop != nullptr && options_.stop->load());
  }

  void work() {
    while (!stopped()) {
      const size_t i = next_.fetch_add(1);
      if (i >= cases_.size()) return;
      const SweepCase& one = cases_[i];
      Question question = options_.question;
      question.prompt = one.prompt;
      question.generate = one.generate;
      question.strategy = one.strategy;
      const auto answer = forecast(models_[one.model].model, costs_[one.chip], question);
      const std::lock_guard lock(mutex_);
      if (failed_.load()) return;
      result_ = row_(one, answer);
      if (!result_) failed_ = true;
    }
  }

  std::vector<cost::DescribedCost> costs_;
  std::span<const SweepModel> models_;
  std::span<const SweepCase> cases_;
  const SweepOptions& options_;
  const SweepRow& row_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  Status result_;
};

}  // namespace

Status sweep(std::span<const SweepChip> chips, std::span<const SweepModel> models,
             std::span<const SweepCase> cases, const SweepOptions& options, const SweepRow& row) {
  for (const SweepCase& one : cases) {
    if (one.chip < chips.size() && one.model < models.size()) continue;
    return make_error(ErrorCode::kInvalidArgument, "a case of chip {} of {} and model {} of {}",
                      one.chip, chips.size(), one.model, models.size());
  }
  return Sweep(chips, models, cases, options, row).run();
}

}  // namespace troika::forecast
