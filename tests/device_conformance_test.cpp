// Every operator on every device that this build knows, against plain double arithmetic. A device
// that is not here is reported as skipped, with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "troika/device/conformance/run_case.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/registry/registry.h"

namespace troika::device {
namespace {

using conformance::Case;
using conformance::Outcome;

// A device string, with what it takes to open it.
struct Subject {
  std::string device;
  std::string name;  // for the test
  std::string kernels;
  int threads = 0;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const DeviceType* const type : device_types()) {
    Subject subject;
    subject.device = type->name;
    subject.name = type->name;
    if (type->name != "cpu") {
      std::vector<std::string> instances = {""};
      if (type->name == "openvino") instances = {":CPU", ":CPU-inputs", ":NPU"};
      // With a fault that never comes, and at a chip's own speed.
      if (type->name == "faulty") instances = {":nan@1000000:cpu"};
      if (type->name == "paced") instances = {":core-ultra-5-125h.gpu@1:cpu"};
      for (const std::string& instance : instances) {
        subject.device = std::string(type->name) + instance;
        subject.name = subject.device;
        std::replace_if(
            subject.name.begin(), subject.name.end(), [](char c) { return !std::isalnum(c); }, '_');
        all.push_back(subject);
      }
      continue;
    }
    for (const cpu::KernelTable* table : cpu::available_kernels()) {
      for (const int threads : {1, 3}) {
        subject.kernels = table->name;
        subject.threads = threads;
        subject.name = fmt::format("cpu_{}_{}", table->name, threads);
        all.push_back(subject);
      }
    }
  }
  return all;
}

using Param = std::tuple<Subject, std::string>;
using Opened = Result<std::vector<std::unique_ptr<Device>>>;

class DeviceConformance : public ::testing::TestWithParam<Param> {
 protected:
  // Opened once, for opening may take a second.
  static const Opened& open(const Subject& subject) {
    const auto found = opened_.find(subject.name);
    if (found != opened_.end()) return found->second;
    OpenOptions options;
    options.kernels = subject.kernels;
    options.threads = subject.threads;
    return opened_.emplace(subject.name, open_devices(subject.device, options)).first->second;
  }

  // Before the program ends: libraries that devices load clean up then.
  static void TearDownTestSuite() { opened_.clear(); }

 private:
  static inline std::map<std::string, Opened> opened_;
};

TEST_P(DeviceConformance, Within) {
  const auto& [subject, group] = GetParam();
  const auto& devices = open(subject);
  if (!devices) {
    // A mistake in the device string says nothing about the machine.
    ASSERT_NE(devices.error().code, ErrorCode::kInvalidArgument) << devices.error().message;
    GTEST_SKIP() << subject.device << ": " << devices.error().message;
  }
  Device& device = *devices->front();
  int ran = 0;
  int within = 0;
  double worst = 0;  // as a part of the bound
  std::map<std::string, int> not_run;
  for (const Case& c : conformance::cases_of(group, device.info())) {
    const Result<Outcome> outcome = run_case(device, c);
    if (outcome && !outcome->not_run.empty()) {
      ++not_run[outcome->not_run];
      continue;
    }
    ++ran;
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    if (!outcome) {
      if (device.stuck()) break;
      continue;
    }
    EXPECT_TRUE(outcome->passed()) << group << " " << c.name << ": NMSE " << outcome->nmse << " at "
                                   << outcome->place << ", bound " << outcome->bound;
    within += outcome->passed() ? 1 : 0;
    worst = std::max(worst, outcome->nmse / outcome->bound);
  }
  RecordProperty("cases", ran);
  std::string left_out;
  for (const auto& [reason, count] : not_run) {
    left_out += fmt::format("; {} left out: {}", count, reason);
  }
  fmt::print("    {} {}: {} of {} cases, worst at {:.3g} of its bound{}\n", subject.name, group,
             within, ran, worst, left_out);
  if (ran == 0) GTEST_SKIP() << left_out.substr(2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance,
                         ::testing::Combine(::testing::ValuesIn(subjects()),
                                            ::testing::ValuesIn(conformance::groups())),
                         [](const ::testing::TestParamInfo<Param>& p) {
                           return std::get<0>(p.param).name + "_" + std::get<1>(p.param);
                         });

}  // namespace
}  // namespace troika::device
