// How many schedules a second the simulator runs: a pass of 4096 rows in 4 chunks through 32 layers
// on two devices, paired cuts, full depth.
//   simulator_speed [SECONDS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "troika/cost/described_cost.h"
#include "troika/model/synth.h"
#include "troika/plan/default_plan.h"
#include "troika/sim/lowered.h"
#include "troika/sim/pass_schedule.h"
#include "troika/soc/catalogue.h"

namespace {

using namespace troika;

// Small weights: the simulator sees only how many tasks there are and who waits for whom.
Result<model::Model> deep_model() {
  model::SynthOptions options;
  ASSIGN_OR_RETURN(options.shape, model::parse_shape("64,32,4,2,96,512"));
  const std::string path = std::filesystem::temp_directory_path() / "simulator_speed.gguf";
  RETURN_IF_ERROR(model::write_synthetic_model(path, options));
  auto model = model::Model::load(path);
  std::filesystem::remove(path);
  return model;
}

// The chip's GPU twice, so that both can have all operators.
cost::DescribedCost twin_cost() {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  const soc::Unit gpu = soc.units[*soc.unit("gpu")];
  soc.units = {gpu, gpu};
  soc.units[1].name = "npu";
  return cost::DescribedCost(soc);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <class Work>
double per_second(double seconds, const Work& work) {
  work();
  const auto begin = std::chrono::steady_clock::now();
  int64_t done = 0;
  while (seconds_since(begin) < seconds) {
    work();
    ++done;
  }
  return static_cast<double>(done) / seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const auto model = deep_model();
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  const graph::Graph graph = *graph::build(*model);
  std::vector<device::DeviceInfo> infos(2);
  infos[0].name = "gpu";
  infos[1].name = "npu";
  const plan::DeviceRates rates[] = {{1, 1}, {1, 1}};
  plan::DefaultPlanOptions options;
  options.max_rows = 4096;
  options.split = *plan::parse_split("paired", 2);
  plan::Plan plan = plan::default_plan(graph, infos, rates, options);
  plan::RowsBucket& bucket = plan.buckets.back();
  bucket.chunks = {1024};
  const auto list = plan::lower(plan, bucket, graph, 4096, 1, infos);
  const cost::DescribedCost cost = twin_cost();
  sim::LoweredOptions lowered;
  lowered.devices = {0, 1};
  const auto schedule = sim::schedule_from(*list, cost, lowered);
  if (!schedule) {
    std::fprintf(stderr, "%s\n", schedule.error().message.c_str());
    return 1;
  }
  sim::Simulator simulator;
  const double runs = per_second(seconds, [&] { simulator.run(*schedule); });
  const double noisy = per_second(seconds, [&] { simulator.run(*schedule, {1, 0.05}); });
  const double built =
      per_second(seconds, [&] { simulator.run(*sim::schedule_from(*list, cost, lowered)); });
  sim::PassScheduler scheduler(graph, cost, infos, lowered);
  sim::PassSchedule pass;
  const double changed = per_second(seconds, [&] {
    // Another share every time, as in a search.
    double& share = bucket.placements.back().parts.front().share;
    share = share < 0.9 ? share + 0.01 : 0.5;
    if (scheduler.build(bucket, 4096, pass)) simulator.run(pass.schedule);
  });
  const double lowered_anew = per_second(seconds, [&] {
    const auto tasks = plan::lower(plan, bucket, graph, 4096, 1, infos);
    simulator.run(*sim::schedule_from(*tasks, cost, lowered));
  });
  std::printf("%zu tasks: %.0f runs/s, %.0f with noise, %.0f with costs of every task anew\n",
              schedule->tasks.size(), runs, noisy, built);
  std::printf(
      "of a changed plan: %.0f schedules made and run a second (%zu tasks), %.0f by lowering\n",
      changed, pass.schedule.tasks.size(), lowered_anew);
  return 0;
}
