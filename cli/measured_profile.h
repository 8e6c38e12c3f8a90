// Profiles of this machine's devices: the stored one that holds, or one that is measured now.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "troika/device/device.h"
#include "troika/device/registry/registry.h"
#include "troika/graph/graph.h"
#include "troika/profile/record/profile.h"

namespace troika::cli {

struct ProfileWish {
  std::string devices = "cpu";
  device::OpenOptions open;
  device::KvType kv_type = device::KvType::kF32;
  std::string cache_folder;  // empty: nothing is used or kept
  bool again = false;        // measure even if a stored profile holds
};

// Opens what can be profiled; tried in another process first. kDeviceFailed naming what cannot.
Result<std::vector<std::unique_ptr<device::Device>>> open_for_profile(const ProfileWish& wish,
                                                                      Console& console);

// kNotFound or the reason why what is stored does not hold.
Result<profile::Profile> stored_profile(const ProfileWish& wish, const graph::Graph& graph,
                                        std::span<const std::unique_ptr<device::Device>> devices);

// The stored one, or measures with progress; the graph has weights. kCancelled on Ctrl-C: what is
// known then is kept, and taken up by the next call.
Result<profile::Profile> measured_profile(const ProfileWish& wish, const graph::Graph& graph,
                                          std::span<const std::unique_ptr<device::Device>> devices,
                                          Console& console);

// A profile by hand or from elsewhere; errors name the file.
Result<profile::Profile> read_profile(const std::string& path);

}  // namespace troika::cli
