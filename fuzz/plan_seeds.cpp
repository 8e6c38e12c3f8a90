// Writes inputs for plan_fuzz to begin with: sound plans for one and two devices, in chunks with
// orders and joins among them.
//   plan_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "troika/graph/graph.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/plan/plan.h"
#include "troika/plan/testing/random_plan.h"

int main(int argc, char** argv) {
  using namespace troika;
  if (argc != 2) {
    std::fputs("usage: plan_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const auto bytes = model::testing::TinyModel().bytes();
  const auto model = model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  const auto graph = graph::build(*model);
  plan::Plan one = plan::single_device_plan(*graph, "cpu", 512, "f32");
  plan::Plan two = plan::single_device_plan(*graph, "cpu@0", 8, "f16");
  two.devices.push_back("cpu@1");
  two.buckets.push_back(two.buckets[0]);
  two.buckets[1].max_rows = 64;
  two.buckets[1].placements[1].parts[0].device = "cpu@1";
  std::vector<plan::Plan> plans = {one, two};
  std::mt19937 random(1);
  for (int i = 0; i < 12; ++i) {
    plans.push_back(plan::testing::random_plan(*graph, {"cpu@0", "cpu@1"}, 64, random));
  }
  int number = 0;
  for (const plan::Plan& plan : plans) {
    std::ofstream out(folder / ("plan-" + std::to_string(++number) + ".json"), std::ios::binary);
    out << plan::to_json(plan);
    if (!out.flush()) {
      std::fputs("a plan cannot be written\n", stderr);
      return 1;
    }
  }
  return 0;
}
