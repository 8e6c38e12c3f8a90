// Measures a machine's devices on a model's shapes: everything that a profile holds.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/profile/measure/stopwatch.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {

struct ProfilerOptions {
  int64_t max_rows = 512;                             // of one pass
  std::vector<int64_t> depths = {0, 128, 512, 1024};  // tokens before a pass, for attention
  device::KvType kv_type = device::KvType::kF32;
  // A linear device gets points between its points until what lies between those is as near as
  // this, or there are `most_rows_points` of them.
  double row_error = 0.08;
  size_t most_rows_points = 24;
  // Larger pieces of work are left to the law, multiply-adds.
  double most_macs = 3e9;
  bool layers = true;  // measure whole layers, attention and elementwise operators, too
  Repeats repeats;
  std::function<bool()> cancelled;            // asked often; true: kCancelled
  std::function<void(double part)> progress;  // 0 to 1
  // What is known so far; called every few seconds, so that an interrupted run can be taken up.
  std::function<void(const Profile&)> save;
};

// What a profile says of the model.
ProfiledModel profiled_model(const graph::Graph& graph, device::KvType kv_type);
// Facts of a device before anything is measured.
DeviceProfile profiled_device(const device::DeviceInfo& info);

// Of this machine as it is, for the model on these devices: what a profile holds before anything is
// measured. `build` names the program.
Profile empty_profile(const graph::Graph& graph,
                      std::span<const std::unique_ptr<device::Device>> devices,
                      device::KvType kv_type, std::string build);

// Fills `profile`: points that it holds already are not measured again, if its devices are these.
// `clock` is of the calling thread; devices have their own. An error of a device names it. The
// machine is for the caller to describe.
Status measure_profile(const graph::Graph& graph,
                       std::span<const std::unique_ptr<device::Device>> devices,
                       const ProfilerOptions& options, Profile& profile,
                       const Clock& clock = system_clock());

}  // namespace troika::profile
