// Writes an input for stored_plan_fuzz to begin with: a plan of two devices.
//   stored_plan_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "troika/engine/stored_plan.h"

int main(int argc, char** argv) {
  using namespace troika;
  if (argc != 2) {
    std::fputs("usage: stored_plan_seeds FOLDER\n", stderr);
    return 2;
  }
  engine::StoredPlan stored;
  stored.strategy = std::string("troika");
  for (const char* name : {"cpu@0", "npu"}) {
    profile::DeviceProfile device;
    device.name = name;
    device.kind = std::string("cpu");
    stored.of.devices.push_back(device);
    stored.plan.devices.emplace_back(name);
  }
  plan::Placement placement;
  placement.cut = plan::Cut::kPaired;
  placement.parts = {{"cpu@0", 0.25, false}, {"npu", 0.75, true}};
  plan::RowsBucket bucket;
  bucket.max_rows = 64;
  bucket.chunks = {32};
  bucket.placements = {placement};
  stored.plan.buckets = {bucket};
  stored.passes.resize(1);
  stored.passes[0].name = std::string("paired");
  stored.passes[0].reason = std::string("measured");
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / "plan.json", std::ios::binary);
  out << engine::to_json(stored);
  if (out.flush()) return 0;
  std::fputs("a plan cannot be written\n", stderr);
  return 1;
}
