#include "troika/engine/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "troika/base/cache_file.h"
#include "troika/engine/engine.h"
#include "troika/engine/stored_plan.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/record/profile_store.h"

namespace troika::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Drifted, TellsHowMuchLongerOnlyWhenDevicesAreApart) {
  EXPECT_FALSE(drifted(std::vector<SeenTime>{{1s, 1100ms}, {1s, 900ms}}).has_value());
  // A machine that is slower as a whole has other shares no more than before.
  EXPECT_FALSE(drifted(std::vector<SeenTime>{{1s, 2s}, {1s, 2s}}).has_value());
  EXPECT_FALSE(drifted({}).has_value());
  const auto apart = drifted(std::vector<SeenTime>{{1s, 2s}, {1s, 1s}});
  ASSERT_TRUE(apart.has_value());
  EXPECT_THAT(*apart, ::testing::ElementsAre(2, 1));
  // Little was seen of the second.
  const auto little = drifted(std::vector<SeenTime>{{1s, 3s}, {1ms, 9ms}});
  ASSERT_TRUE(little.has_value());
  EXPECT_THAT(*little, ::testing::ElementsAre(3, 1));
}

// Two devices with a profile that is measured once and then told to be what it is not.
class StoredPlanTest : public ::testing::Test {
 protected:
  StoredPlanTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
    options_.devices = "cpu@0,systolic@0";
    options_.check = false;
    options_.context = 128;
    options_.batch_rows = 16;
    options_.cache_folder = folder_;
    options_.build = std::string("test");
    options_.tell = [this](const std::string& line) { told_.push_back(line); };
    options_.warn = [this](const std::string& line) { warned_.push_back(line); };
  }
  ~StoredPlanTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<Engine> engine() {
    auto made = Engine::create(*model::Model::load(*model::memory_source(bytes_), "tiny.gguf", {}),
                               options_);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  // Keeps a profile in which the software NPU is `times` as fast as it is, and a plan by it.
  void keep(double times) {
    const auto one = engine();
    ASSERT_TRUE(one);
    profile::ProfilerOptions quick;
    quick.max_rows = 16;
    quick.depths = {0, 32};
    quick.repeats.most = 5;
    quick.repeats.budget = 2ms;
    profile::Profile profile =
        profile::empty_profile(one->graph(), one->devices(), device::KvType::kF32, "test");
    const Status done = profile::measure_profile(one->graph(), one->devices(), quick, profile);
    ASSERT_TRUE(done.has_value()) << done.error().message;
    profile::DeviceProfile& npu = profile.devices[1];
    for (auto& point : npu.products) point.time.median_us /= times;
    for (auto& point : npu.attention) point.time.median_us /= times;
    for (auto& point : npu.elementwise) point.time.median_us /= times;
    npu.layers.clear();
    ASSERT_TRUE(profile::ProfileStore(folder_).save(profile).has_value());

    auto cost = cost::ProfiledCost::create(profile);
    ASSERT_TRUE(cost.has_value());
    std::vector<device::DeviceInfo> infos;
    for (const auto& device : one->devices()) infos.push_back(device->info());
    MachinePlanOptions machine;
    machine.max_rows = 16;
    machine.decode_depth = 16;
    machine.evaluations = 20;
    auto made = planner::plan_model(one->graph(), *cost, *planner::strategy_from("troika"),
                                    request_for(machine, infos));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    StoredPlan stored;
    stored.time = seconds_since_1970();
    stored.strategy = std::string("troika");
    stored.of = profile::without_points(profile);
    stored.plan = made->plan;
    name_devices(stored.plan, cost->devices());
    stored.plan.reason = std::string("by a profile");
    stored.passes.resize(stored.plan.buckets.size());
    ASSERT_TRUE(PlanStore(folder_).save(stored).has_value());
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "troika-drift-XXXXXX").string();
  std::vector<std::byte> bytes_ = model::testing::TinyModel().bytes();
  std::vector<std::string> told_;
  std::vector<std::string> warned_;
  EngineOptions options_;
};

TEST_F(StoredPlanTest, IsUsedAndSaidAndItsTasksArePredicted) {
  keep(1);
  options_.trace = true;
  const auto one = engine();
  ASSERT_TRUE(one);
  EXPECT_THAT(told_, Contains(HasSubstr("plan: stored, made from a profile; by a profile")));
  ASSERT_TRUE(one->time_decode(4, 0).has_value());
  const Trace trace = one->trace();
  ASSERT_FALSE(trace.events.empty());
  for (const TraceEvent& event : trace.events) EXPECT_GT(event.predicted_us, 0) << event.name;
}

TEST_F(StoredPlanTest, IsRefusedWithAReason) {
  keep(1);
  options_.build = std::string("another");
  ASSERT_TRUE(engine());
  EXPECT_THAT(warned_, Contains(HasSubstr("stored plan is stale: another build")));
  options_.build = std::string("test");
  options_.batch_rows = 64;
  ASSERT_TRUE(engine());
  EXPECT_THAT(warned_, Contains(HasSubstr("it is for passes of up to 16 rows, not 64")));
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/plans")) {
    std::ofstream(file.path()) << "{";
  }
  options_.batch_rows = 16;
  ASSERT_TRUE(engine());
  EXPECT_THAT(warned_, Contains(HasSubstr("the stored plan is damaged")));
}

TEST_F(StoredPlanTest, IsLeftAloneWhereTheUserSaysWhoComputes) {
  keep(1);
  options_.split = std::string("paired");
  ASSERT_TRUE(engine());
  EXPECT_THAT(told_, Not(Contains(HasSubstr("stored"))));
}

}  // namespace
}  // namespace troika::engine
