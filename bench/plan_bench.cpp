// Holds a plan against every other share, on the devices:
//   plan_bench MODEL PLAN ROWS sweep CUT [RUNS]     times of CUT with shares in steps of 5 %
//   plan_bench MODEL PLAN ROWS against RULE [PAIRS]  the plan and a split rule in turn
// ROWS 1 is decode at a depth of 128 tokens. CUT and RULE are those of --split, without a phase;
// the rule "DEVICE" alone is that device. The plan is a file of 'troika plan -o'; two devices. Run
// it on an idle machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/base/median.h"
#include "troika/engine/engine.h"
#include "troika/engine/plan_timer.h"
#include "troika/plan/default_plan.h"

namespace {

using namespace troika;
using bench::fail;
using bench::need;

constexpr int64_t kDecodeDepth = 128;
constexpr int kStep = 5;  // percent

struct Bench {
  std::unique_ptr<engine::Engine> engine;
  std::vector<device::DeviceInfo> infos;
  int64_t rows = 1;

  int64_t depth() const { return rows == 1 ? kDecodeDepth : 0; }

  // Of a split rule without phase, or of one device by name.
  plan::RowsBucket bucket(const std::string& rule) const {
    for (const device::DeviceInfo& info : infos) {
      if (info.name != rule) continue;
      plan::Plan alone =
          plan::single_device_plan(engine->graph(), info.name, rows, engine->plan().kv_type);
      return alone.buckets.front();
    }
    plan::DefaultPlanOptions options;
    options.max_rows = rows;
    options.kv_type = engine->plan().kv_type;
    const std::string phases = fmt::format("decode={0},prefill={0}", rule);
    options.split = need(plan::parse_split(phases, infos.size()));
    const std::vector<plan::DeviceRates> rates(infos.size(), {1, 1});
    const plan::Plan made = plan::default_plan(engine->graph(), infos, rates, options);
    const plan::RowsBucket* found = made.bucket(rows);
    if (found == nullptr) fail("no bucket for so many rows");
    plan::RowsBucket own = *found;
    own.max_rows = rows;
    return own;
  }
  plan::RowsBucket planned() const {
    const plan::RowsBucket* found = engine->plan().bucket(rows);
    if (found == nullptr) fail("the plan has no bucket for so many rows");
    return *found;
  }
};

void sweep(const Bench& bench, const std::string& cut, int runs) {
  engine::PlanTimer timer(*bench.engine);
  for (int share = 0; share <= 100; share += kStep) {
    std::string rule = fmt::format("{}:{}/{}", cut, share, 100 - share);
    if (share == 0) rule = bench.infos[1].name;
    if (share == 100) rule = bench.infos[0].name;
    const plan::RowsBucket bucket = bench.bucket(rule);
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) {
      times.push_back(need(timer.time(bucket, bench.rows, bench.depth())));
    }
    std::printf("%-32s %10.2f ms, least %10.2f ms\n", rule.c_str(), median(times) * 1e-3,
                *std::min_element(times.begin(), times.end()) * 1e-3);
    std::fflush(stdout);
  }
}

// Mean and bounds of the plan's loss against the rule, by alternating pairs.
void against(const Bench& bench, const std::string& rule, int pairs) {
  engine::PlanTimer timer(*bench.engine);
  const plan::RowsBucket own = bench.planned();
  const plan::RowsBucket other = bench.bucket(rule);
  std::vector<double> logs, first, second;
  for (int i = 0; i < pairs; ++i) {
    const bool plan_first = i % 2 == 0;
    const double a = need(timer.time(plan_first ? own : other, bench.rows, bench.depth()));
    const double b = need(timer.time(plan_first ? other : own, bench.rows, bench.depth()));
    first.push_back(plan_first ? a : b);
    second.push_back(plan_first ? b : a);
    logs.push_back(std::log(first.back() / second.back()));
  }
  double mean = 0;
  for (const double one : logs) mean += one / pairs;
  double squares = 0;
  for (const double one : logs) squares += (one - mean) * (one - mean);
  // One-sided 95 % of Student's distribution is below this for nine degrees of freedom and more.
  const double error = 1.833 * std::sqrt(squares / (pairs - 1) / pairs);
  std::printf(
      "plan %.2f ms, %s %.2f ms in %d pairs: loss %.1f %%, lower 95 %% bound %.1f %%, upper %.1f "
      "%%\n",
      median(first) * 1e-3, rule.c_str(), median(second) * 1e-3, pairs, 100 * (std::exp(mean) - 1),
      100 * (std::exp(mean - error) - 1), 100 * (std::exp(mean + error) - 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) fail("usage: plan_bench MODEL PLAN ROWS sweep CUT [RUNS] | against RULE [PAIRS]");
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  engine::EngineOptions options;
  options.plan = need(plan::from_json(text));
  options.plan_name = argv[2];
  options.devices.clear();
  options.context = 1024;
  options.check = false;
  // Compiled graphs are used again by the next run.
  options.graph_folder = (std::filesystem::temp_directory_path() / "troika-plan-bench").string();
  Bench bench;
  bench.rows = std::max(1, std::atoi(argv[3]));
  options.batch_rows = options.plan->buckets.back().max_rows;
  bench.engine = need(engine::Engine::create(need(model::Model::load(argv[1])), options));
  for (const auto& device : bench.engine->devices()) bench.infos.push_back(device->info());
  if (bench.infos.size() != 2) fail("the plan must be of two devices");
  const std::string mode = argv[4];
  const int count = argc > 6 ? std::atoi(argv[6]) : 0;
  if (mode == "sweep") sweep(bench, argv[5], count > 0 ? count : 3);
  if (mode == "against") against(bench, argv[5], std::max(count, 10));
  return 0;
}
