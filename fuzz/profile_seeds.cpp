// Writes inputs for profile_fuzz to begin with: a profile with every kind of point, and an empty
// one.
//   profile_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "troika/profile/record/profile.h"

namespace {

troika::profile::Profile full_profile() {
  using namespace troika::profile;
  Profile profile;
  profile.build = std::string("seed");
  profile.complete = true;
  profile.model = {"model", "Q4_1", 2, 64, 4, 2, 16, 96, 1000, "f32"};
  for (const char* name : {"cpu@0", "npu"}) {
    DeviceProfile device;
    device.name = name;
    device.kind = std::string("cpu");
    device.version = std::string("1");
    device.facts = {{"kernels", "avx2"}};
    device.standard_rows = {1, 32, 64};
    device.n_tile = 32;
    device.read_gbps = 10;
    device.launch = {1, 2, 3, 4, 5};
    device.products = {{1, 64, 64, "Q4_1", 5, Order::kWeightInPlace, {3, 0.1, 5}},
                       {64, 64, 64, "Q4_1", 5, Order::kWeightInPlace, {90, 2, 5}},
                       {64, 32, 64, "Q4_1", 5, Order::kInputInPlace, {50, 2, 5}}};
    device.attention = {{1, 8, 4, 2, 16, "f32", {1, 0, 3}}, {32, 0, 4, 2, 16, "f32", {9, 0, 3}}};
    device.elementwise = {{"add", 1, 64, 768, {0.5, 0, 3}}};
    device.layers = {{1, 0, {20, 1, 4}}, {64, 0, {900, 1, 4}}};
    device.builds = {{64, 64, 64, 1e4, 4096}, {1, 64, 64, 1e3, 4096}};
    device.checks = {{3, 64, 64, Order::kInputInPlace, 10, 11}};
    profile.devices.push_back(device);
  }
  profile.pairs = {{"cpu@0", "npu", 0.9, 0.8, 20, 15, 60}};
  profile.machine.meters = {{"package-0", "powercap", 12.5}};
  return profile;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace troika;
  if (argc != 2) {
    std::fputs("usage: profile_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const std::pair<const char*, profile::Profile> seeds[] = {{"full", full_profile()},
                                                            {"empty", {}}};
  for (const auto& [name, profile] : seeds) {
    std::ofstream out(folder / (std::string(name) + ".json"), std::ios::binary);
    out << profile::to_json(profile);
    if (!out.flush()) {
      std::fputs("a profile cannot be written\n", stderr);
      return 1;
    }
  }
  return 0;
}
