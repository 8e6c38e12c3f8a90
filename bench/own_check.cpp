// Holds what is simulated on a description of this machine against what the same plans take here:
//   own_check MODEL SOC [ROUNDS]
// SOC is what 'troika soc from-profile' wrote; each of its units has a device here. Every strategy
// plans every length and decode on the description; the different plans of a length are then run in
// turn.
// Run it on an idle machine.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/base/median.h"
#include "troika/cost/described_cost.h"
#include "troika/engine/engine.h"
#include "troika/engine/plan_timer.h"
#include "troika/planner/model_plan.h"
#include "troika/planner/unit_devices.h"
#include "troika/soc/soc.h"

namespace {

using namespace troika;
using bench::fail;
using bench::need;

constexpr int64_t kRows[] = {1, 17, 64, 100, 256, 300, 512, 1000};
constexpr int64_t kDecodeDepth = 128;

// A plan of one pass, by one strategy or by several that came to the same.
struct Case {
  std::string strategies;
  int64_t rows = 1;
  plan::RowsBucket bucket;  // on this machine's devices
  double simulated_us = 0;
  std::vector<double> measured_us;

  int64_t depth() const { return rows == 1 ? kDecodeDepth : 0; }
};

std::vector<std::string> strategies(const soc::Soc& soc) {
  std::vector<std::string> names = {"layer",       "padding",      "pipe",  "heteroinfer-forced",
                                    "heteroinfer", "heteromosaic", "troika"};
  for (const soc::Unit& unit : soc.units) names.push_back("single:" + unit.name);
  return names;
}

// Those that the strategy can have here; says why of the others.
void add_cases(const std::string& name, const graph::Graph& graph, const soc::Soc& soc,
               std::vector<Case>& cases) {
  const cost::DescribedCost cost(soc);
  const planner::Strategy strategy = need(planner::strategy_from(name));
  for (const int64_t rows : kRows) {
    planner::PassRequest request;
    request.rows = rows;
    request.depth = rows == 1 ? kDecodeDepth : 0;
    const auto planned = planner::plan_pass(graph, cost, strategy, request);
    if (!planned) {
      std::printf("%s at %lld: %s\n", name.c_str(), static_cast<long long>(rows),
                  planned.error().message.c_str());
      continue;
    }
    plan::Plan whole;
    for (const soc::Unit& unit : soc.units) whole.devices.push_back(unit.name);
    whole.buckets = {planned->bucket};
    Case one{
        name, rows, planner::for_devices(whole, soc).buckets.front(), planned->forecast.us, {}};
    plan::Plan text;
    text.buckets = {one.bucket};
    const std::string key = plan::to_json(text);
    bool known = false;
    for (Case& other : cases) {
      text.buckets = {other.bucket};
      if (other.rows != rows || plan::to_json(text) != key) continue;
      other.strategies += ", " + name;
      known = true;
      break;
    }
    if (!known) cases.push_back(std::move(one));
  }
}

void report(const std::vector<Case>& cases) {
  double sum = 0, sum_decode = 0;
  int count = 0, count_decode = 0;
  for (const Case& one : cases) {
    const double measured = median(one.measured_us);
    const double error = one.simulated_us / measured - 1;
    const std::string pass = one.rows == 1 ? "decode" : fmt::format("prefill {}", one.rows);
    std::printf("%-14s simulated %10.2f ms, measured %10.2f ms, %+6.1f %%  %s\n", pass.c_str(),
                one.simulated_us * 1e-3, measured * 1e-3, 100 * error, one.strategies.c_str());
    (one.rows == 1 ? sum_decode : sum) += std::abs(error);
    ++(one.rows == 1 ? count_decode : count);
  }
  std::printf(
      "mean error: %.1f %% of %d passes of prefill, %.1f %% of %d of decode, %.1f %% of all\n",
      100 * sum / count, count, 100 * sum_decode / count_decode, count_decode,
      100 * (sum + sum_decode) / (count + count_decode));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: own_check MODEL SOC [ROUNDS]");
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const soc::Soc soc = need(soc::from_json(text));
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  engine::EngineOptions options;
  options.context = 1024;
  options.batch_rows = 1024;
  // Compiled graphs are used again by the next run.
  options.graph_folder = (std::filesystem::temp_directory_path() / "troika-own-check").string();
  options.devices.clear();
  for (const soc::Unit& unit : soc.units) {
    const std::string device = soc::device_of(unit);
    if (device.empty()) fail("no device drives the unit " + unit.name);
    options.devices += (options.devices.empty() ? "" : ",") + device;
  }
  const auto engine = need(engine::Engine::create(need(model::Model::load(argv[1])), options));
  std::vector<Case> cases;
  for (const std::string& name : strategies(soc)) add_cases(name, engine->graph(), soc, cases);
  engine::PlanTimer timer(*engine);
  std::fprintf(stderr, "%zu plans\n", cases.size());
  // Those of a length in turn, so that a slow minute of the machine falls on all.
  for (const int64_t rows : kRows) {
    for (int i = 0; i < rounds; ++i) {
      for (Case& one : cases) {
        if (one.rows != rows) continue;
        one.measured_us.push_back(need(timer.time(one.bucket, one.rows, one.depth())));
      }
    }
    std::fprintf(stderr, "%lld rows are measured\n", static_cast<long long>(rows));
  }
  report(cases);
  return 0;
}
