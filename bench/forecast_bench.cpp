// Holds what a profile predicts of whole passes against what they take:
//   forecast_bench MODEL PROFILE [ROUNDS [SPLIT]]
// The devices are the profile's; the plan is the default one, or by the split rule. A prompt longer
// than a pass is several passes. Run it on an idle machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/base/median.h"
#include "troika/cost/profiled_cost.h"
#include "troika/engine/engine.h"
#include "troika/planner/model_plan.h"

namespace {

using namespace troika;
using bench::fail;
using bench::need;

constexpr int64_t kPassRows = 512;
constexpr int64_t kDecodeDepth = 128;
constexpr int64_t kDecodeSteps = 32;

// The devices that the plan uses, in its order.
profile::Profile of_plan(const profile::Profile& profile, const plan::Plan& plan) {
  profile::Profile used = profile;
  used.devices.clear();
  for (const std::string& name : plan.devices) {
    const profile::DeviceProfile* device = profile.device(name);
    if (device == nullptr) fail("the profile has no device " + name);
    used.devices.push_back(*device);
  }
  return used;
}

class Forecasts {
 public:
  Forecasts(const graph::Graph& graph, const plan::Plan& plan, const profile::Profile& profile)
      : graph_(graph),
        plan_(plan),
        cost_(need(cost::ProfiledCost::create(of_plan(profile, plan)))) {}

  // Of a prompt, in passes; us.
  double prompt_us(int64_t rows, int64_t depth = 0) const {
    double us = 0;
    for (int64_t done = 0; done < rows; done += kPassRows) {
      planner::PassRequest request;
      request.rows = std::min(kPassRows, rows - done);
      request.depth = depth + done;
      const plan::RowsBucket* bucket = plan_.bucket(request.rows);
      if (bucket == nullptr) fail("the plan has no bucket for so many rows");
      us += need(planner::evaluate(graph_, cost_, *bucket, request)).us;
    }
    return us;
  }

 private:
  const graph::Graph& graph_;
  const plan::Plan& plan_;
  cost::ProfiledCost cost_;
};

double report(const std::string& what, double predicted_us, const std::vector<double>& measured) {
  const double error = predicted_us / median(measured) - 1;
  std::printf("%-14s predicted %10.2f ms, measured %10.2f ms, %+6.1f %%\n", what.c_str(),
              predicted_us * 1e-3, median(measured) * 1e-3, 100 * error);
  return std::abs(error);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: forecast_bench MODEL PROFILE [ROUNDS [SPLIT]]");
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const profile::Profile profile = need(profile::from_json(text));
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  engine::EngineOptions options;
  options.context = 1024 + kDecodeSteps;
  options.batch_rows = kPassRows;
  options.split = argc > 4 ? argv[4] : "";
  options.devices.clear();
  for (const profile::DeviceProfile& device : profile.devices) {
    options.devices += (options.devices.empty() ? "" : ",") + device.name;
  }
  const auto engine = need(engine::Engine::create(need(model::Model::load(argv[1])), options));
  const graph::Graph graph = need(graph::build(engine->model()));
  const Forecasts forecasts(graph, engine->plan(), profile);
  std::printf("plan: %s\n", engine->plan().reason.c_str());
  // In turn, so that a slow minute of the machine falls on all.
  constexpr int64_t kRows[] = {1, 17, 64, 100, 256, 300, 512, 1000};
  std::map<int64_t, std::vector<double>> prefill;
  std::vector<double> measured;
  for (const int64_t rows : kRows) need(engine->time_prefill(rows, 0));  // compiles and warms up
  need(engine->time_decode(kDecodeSteps, kDecodeDepth));
  for (int i = 0; i < rounds; ++i) {
    for (const int64_t rows : kRows) {
      prefill[rows].push_back(to_us(need(engine->time_prefill(rows, 0))));
    }
    measured.push_back(to_us(need(engine->time_decode(kDecodeSteps, kDecodeDepth))) /
                       static_cast<double>(kDecodeSteps));
  }
  std::vector<double> errors;
  for (const int64_t rows : kRows) {
    errors.push_back(
        report(fmt::format("prefill {}", rows), forecasts.prompt_us(rows), prefill[rows]));
  }
  const double decode =
      report("decode", forecasts.prompt_us(1, kDecodeDepth + kDecodeSteps / 2), measured);
  std::printf("prefill: median error %.1f %%; decode: %.1f %%\n", 100 * median(errors),
              100 * decode);
  return 0;
}
