#include "troika/reproduce/comparison.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "troika/reproduce/case_value.h"

namespace troika::reproduce {
namespace {

using published::Case;

// Runs the passes on several threads: cases then find them done.
class Ahead {
 public:
  Ahead(std::vector<RunKey> keys, Runs& runs, const CompareOptions& options)
      : keys_(std::move(keys)), runs_(runs), options_(options) {}

  // False if cancelled. What fails here fails again, with its case's name, when that is asked for.
  bool run() {
    std::vector<std::thread> threads;
    const int count = std::clamp<int>(options_.threads, 1, 64);
    for (int i = 1; i < count; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    return !cancelled_;
  }

 private:
  void work() {
    while (!cancelled_) {
      const size_t i = next_++;
      if (i >= keys_.size()) return;
      static_cast<void>(runs_.pass(keys_[i]).has_value());
      const std::lock_guard lock(mutex_);
      ++done_;
      if (options_.progress && !options_.progress(done_, keys_.size())) cancelled_ = true;
    }
  }

  std::vector<RunKey> keys_;
  Runs& runs_;
  const CompareOptions& options_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  size_t done_ = 0;
};

void add(MeanError& mean, double error) {
  mean.mean_pct += std::abs(error);
  ++mean.count;
  if (std::abs(error) > 25) ++mean.above_25;
}

void finish(MeanError& mean) {
  if (mean.count > 0) mean.mean_pct /= static_cast<double>(mean.count);
}

}  // namespace

double error_pct(const Case& figure, double simulated) {
  const double low = figure.published;
  const double high = figure.published_to.value_or(low);
  if (simulated >= low && simulated <= high) return 0;
  const double near = simulated < low ? low : high;
  const std::string_view unit = published::unit_of(figure.metric);
  if (unit == "share") return 100 * (simulated - near);
  if (unit == "%") return simulated - near;
  return near > 0 ? 100 * (simulated / near - 1) : 100;
}

Result<Comparison> compare(const std::vector<published::Paper>& papers, Runs& runs,
                           const CompareOptions& options) {
  Comparison comparison;
  for (const published::Paper& paper : papers) {
    for (const Case& one : paper.cases) {
      if (options.only_calibrated && !one.calibrated) continue;
      comparison.rows.push_back({paper.name, one, std::nullopt, 0});
    }
  }
  std::vector<RunKey> keys;
  std::set<std::string> seen;
  for (const Row& row : comparison.rows) {
    for (const RunKey& key : passes_of(row.figure)) {
      if (seen.insert(key.text()).second) keys.push_back(key);
    }
  }
  if (!Ahead(std::move(keys), runs, options).run()) {
    return make_error(ErrorCode::kCancelled, "stopped");
  }
  for (Row& row : comparison.rows) {
    if (!row.figure.left_out.empty()) continue;
    const auto value = simulated(row.figure, runs);
    if (!value) {
      return make_error(value.error().code, "{} {}: {}", row.paper, row.figure.name,
                        value.error().message);
    }
    row.simulated = *value;
    row.error_pct = error_pct(row.figure, *value);
    if (row.figure.calibrated) add(comparison.calibration, row.error_pct);
    if (!row.figure.calibrated && !row.figure.described) add(comparison.validation, row.error_pct);
  }
  finish(comparison.calibration);
  finish(comparison.validation);
  return comparison;
}

}  // namespace troika::reproduce
