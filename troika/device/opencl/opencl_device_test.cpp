// The device on whatever OpenCL runtime is here, in memory of its own, with the kernels of
// processors and of GPUs: PoCL runs both. (In shared memory device_conformance_test runs it.)
#include "troika/device/opencl/opencl_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "troika/device/conformance/run_case.h"
#include "troika/device/opencl/device_clock.h"

namespace troika::device::opencl {
namespace {

using conformance::Case;
using conformance::Outcome;

// A folder that is gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "troika-opencl-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Form {
  std::string name;
  bool gpu_kernels = false;
  bool own_memory = false;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {{"host_own", false, true}, {"gpu_own", true, true}};
  return all;
}

Result<std::unique_ptr<Device>> open_form(const Form& form, const std::string& cache_dir = "") {
  OpenClOptions options;
  options.gpu_kernels = form.gpu_kernels;
  options.own_memory = form.own_memory;
  options.tile_weights = form.gpu_kernels;  // of whole tiles; others stay in rows
  options.cache_dir = cache_dir;
  return open(options);
}

using Opened = std::map<std::string, Result<std::unique_ptr<Device>>>;

// Opened once for each form, for kernels take a second to compile; closed before the program ends,
// since runtimes clean up then.
Opened& opened() {
  static Opened devices;
  return devices;
}

const Result<std::unique_ptr<Device>>& device_of(const Form& form) {
  const auto found = opened().find(form.name);
  if (found != opened().end()) return found->second;
  return opened().emplace(form.name, open_form(form)).first->second;
}

class CloseDevices : public ::testing::Environment {
 public:
  void TearDown() override { opened().clear(); }
};
const auto* const kCloseDevices = ::testing::AddGlobalTestEnvironment(new CloseDevices);

class OpenClConformance : public ::testing::TestWithParam<std::tuple<Form, std::string>> {};

TEST_P(OpenClConformance, Within) {
  const auto& [form, group] = GetParam();
  const auto& device = device_of(form);
  if (!device) GTEST_SKIP() << device.error().message;
  int ran = 0;
  for (const Case& c : conformance::cases_of(group, (*device)->info())) {
    const Result<Outcome> outcome = run_case(**device, c);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_TRUE(outcome->not_run.empty()) << c.name << ": " << outcome->not_run;
    EXPECT_TRUE(outcome->passed()) << c.name << ": NMSE " << outcome->nmse << " at "
                                   << outcome->place << ", bound " << outcome->bound;
    ++ran;
  }
  EXPECT_GT(ran, 0);
  const bool copies = (*device)->stats().copies > 0;
  EXPECT_EQ(copies, form.own_memory);
}

INSTANTIATE_TEST_SUITE_P(Forms, OpenClConformance,
                         ::testing::Combine(::testing::ValuesIn(forms()),
                                            ::testing::ValuesIn(conformance::groups())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::get<1>(param.param);
                         });

// One small case; compiles what it needs.
Status run_embed(const Form& form, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const auto device, open_form(form, cache_dir));
  const auto cases = conformance::cases_of("embed", device->info());
  ASSIGN_OR_RETURN(const Outcome outcome, run_case(*device, cases.front()));
  if (!outcome.passed()) return make_error(ErrorCode::kDeviceFailed, "wrong values");
  return {};
}

std::vector<std::filesystem::path> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  return files;
}

TEST(OpenClCache, KeepsKernelsAndADamagedFileCostsCompilingAgain) {
  const Form form = forms().front();
  if (!device_of(form)) GTEST_SKIP() << device_of(form).error().message;
  const TemporaryFolder folder;
  ASSERT_TRUE(run_embed(form, folder.path()).has_value());
  const auto files = files_in(folder.path());
  ASSERT_FALSE(files.empty());
  const auto size = std::filesystem::file_size(files[0]);
  const auto written = std::filesystem::last_write_time(files[0]);
  ASSERT_TRUE(run_embed(form, folder.path()).has_value());
  EXPECT_EQ(std::filesystem::last_write_time(files[0]), written) << "not loaded";
  for (const uintmax_t left : {uintmax_t{0}, uintmax_t{10}, size / 2, size - 1}) {
    std::filesystem::resize_file(files[0], left);
    ASSERT_TRUE(run_embed(form, folder.path()).has_value()) << left;
    // Not always as large as before: PoCL's binaries hold what it has compiled so far.
    EXPECT_NE(std::filesystem::file_size(files[0]), left);
  }
  std::fstream(files[0], std::ios::in | std::ios::out).seekp(-5, std::ios::end).put('~');
  ASSERT_TRUE(run_embed(form, folder.path()).has_value());
}

TEST(OpenClCache, AFolderThatCannotBeUsedIsNoError) {
  const Form form = forms().front();
  if (!device_of(form)) GTEST_SKIP() << device_of(form).error().message;
  EXPECT_TRUE(run_embed(form, "/proc/none").has_value());
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "no folder";
  EXPECT_TRUE(run_embed(form, folder.path() + "/file").has_value());
}

// The first case of an operator: why it was not run, "" if it was and is right.
std::string outcome_of(Device& device, const std::string& group) {
  const auto cases = conformance::cases_of(group, device.info());
  const auto outcome = run_case(device, cases.front());
  if (!outcome) return outcome.error().message;
  return outcome->passed() || !outcome->not_run.empty() ? outcome->not_run : "wrong values";
}

TEST(OpenClBuild, AKernelThatDoesNotCompileCostsItsOperatorAndTellsWhy) {
  OpenClOptions options;
  options.broken_kernel = "product";
  const auto device = open(options);
  if (!device) GTEST_SKIP() << device.error().message;
  if ((*device)->info().kind != DeviceKind::kCpu) GTEST_SKIP() << "a GPU has other kernels";
  EXPECT_EQ(outcome_of(**device, "rms_norm"), "");
  EXPECT_NE(outcome_of(**device, "mat_mul"), "");
  EXPECT_EQ(outcome_of(**device, "embed"), "");
  EXPECT_FALSE((*device)->lost());
  std::string told;
  for (const auto& [name, value] : (*device)->info().facts) {
    if (name == "not computed") told += value + "\n";
  }
  EXPECT_THAT(told, ::testing::HasSubstr("mat_mul of "));
  EXPECT_THAT(told, ::testing::HasSubstr("refuses a kernel"));
}

TEST(OpenClTimes, ADevicesClockIsTakenFromTheLeastDelay) {
  DeviceClock clock;
  constexpr int64_t kApart = 5'000'000;
  for (const int64_t delay : {900, 40, 7000}) {
    clock.note(static_cast<uint64_t>(1000 + delay), TimePoint(1000 + delay + kApart + delay));
  }
  EXPECT_EQ(clock.at(2000), TimePoint(2000 + kApart + 40));
}

TEST(OpenClDevice, SaysWhichInstancesThereAre) {
  const auto lines = list_devices();
  if (!lines) GTEST_SKIP() << lines.error().message;
  EXPECT_THAT(lines->front(), ::testing::HasSubstr("opencl:0 "));
  OpenClOptions options;
  options.name = "opencl:abacus";
  options.instance = "abacus";
  const auto device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(device.error().message, ::testing::HasSubstr("opencl:0 is "));
  options.instance = "999";
  EXPECT_FALSE(open(options).has_value());
}

}  // namespace
}  // namespace troika::device::opencl
