#include "troika/engine/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "troika/base/cache_file.h"
#include "troika/engine/engine.h"
#include "troika/engine/stored_plan.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/plan/default_plan.h"
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

  // What a quick look at the devices says.
  static profile::Profile measured(const Engine& engine) {
    profile::ProfilerOptions quick;
    quick.max_rows = 16;
    quick.depths = {0, 32};
    quick.repeats.most = 5;
    quick.repeats.budget = 2ms;
    profile::Profile profile =
        profile::empty_profile(engine.graph(), engine.devices(), device::KvType::kF32, "test");
    const Status done = profile::measure_profile(engine.graph(), engine.devices(), quick, profile);
    EXPECT_TRUE(done.has_value()) << done.error().message;
    return profile;
  }

  void keep(const profile::Profile& profile, plan::Plan plan) const {
    ASSERT_TRUE(profile::ProfileStore(folder_).save(profile).has_value());
    StoredPlan stored;
    stored.time = seconds_since_1970();
    stored.strategy = std::string("troika");
    stored.of = profile::without_points(profile);
    stored.plan = std::move(plan);
    stored.plan.reason = std::string("by a profile");
    stored.passes.resize(stored.plan.buckets.size());
    ASSERT_TRUE(PlanStore(folder_).save(stored).has_value());
  }

  // Keeps a profile, and a plan by it.
  void keep_planned() {
    const auto one = engine();
    ASSERT_TRUE(one);
    const profile::Profile profile = measured(*one);
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
    name_devices(made->plan, cost->devices());
    keep(profile, made->plan);
  }

  // Keeps a profile of `healthy` devices under the name of `options_.devices`, which slow down
  // later, and a plan in which all share alike.
  void keep_shared(const std::string& healthy) {
    const std::string devices = std::exchange(options_.devices, healthy);
    profile::Profile profile;
    {
      const auto one = engine();
      ASSERT_TRUE(one);
      profile = measured(*one);
    }
    options_.devices = devices;
    const auto one = engine();
    ASSERT_TRUE(one);
    const profile::Profile own =
        profile::empty_profile(one->graph(), one->devices(), device::KvType::kF32, "test");
    std::vector<device::DeviceInfo> infos;
    for (size_t i = 0; i < own.devices.size(); ++i) {
      infos.push_back(one->devices()[i]->info());
      profile::DeviceProfile& device = profile.devices[i];
      for (profile::PairProfile& pair : profile.pairs) {
        if (pair.first == device.name) pair.first = own.devices[i].name;
        if (pair.second == device.name) pair.second = own.devices[i].name;
      }
      device.name = own.devices[i].name;
      device.version = own.devices[i].version;
      device.facts = own.devices[i].facts;
    }
    plan::DefaultPlanOptions shared;
    shared.max_rows = 16;
    shared.split = *plan::parse_split("decode=paired:1/1,prefill=paired:1/1", infos.size());
    const std::vector<plan::DeviceRates> rates(infos.size(), {1, 1});
    plan::Plan plan = plan::default_plan(one->graph(), infos, rates, shared);
    plan.activations = std::string("f32");
    keep(profile, std::move(plan));
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "troika-drift-XXXXXX").string();
  std::vector<std::byte> bytes_ = model::testing::TinyModel().bytes();
  std::vector<std::string> told_;
  std::vector<std::string> warned_;
  EngineOptions options_;
};

TEST_F(StoredPlanTest, IsUsedAndSaidAndItsTasksArePredicted) {
  keep_planned();
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
  keep_planned();
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

// The second device is twenty times slower from its three thousandth task on, in the midst of a
// chat: the next answers show it, and the plan follows.
TEST_F(StoredPlanTest, IsCorrectedBetweenAnswersWhenADeviceSlowsDown) {
  options_.devices = std::string("cpu@0,faulty:slow@20-3000:cpu@1");
  keep_shared("cpu@0,faulty:slow@1:cpu@1");
  const auto one = engine();
  ASSERT_TRUE(one);
  EXPECT_THAT(told_, Contains(HasSubstr("plan: stored")));
  const auto share = [&] {
    one->take_uses();
    EXPECT_TRUE(one->time_decode(64, 0).has_value());
    return one->take_uses()[1].share;
  };
  const double before = share();
  EXPECT_GT(before, 0.2);
  const auto is_told = [&] {
    return std::any_of(told_.begin(), told_.end(), [](const std::string& line) {
      return line.find("plan: corrected, for ") != std::string::npos &&
             line.find("faulty:slow@20-3000:cpu@1 takes ") != std::string::npos;
    });
  };
  for (int answer = 0; answer < 300 && !is_told(); ++answer) {
    ASSERT_TRUE(one->time_decode(64, 0).has_value());
    ASSERT_TRUE(one->balance().has_value());
  }
  EXPECT_TRUE(is_told());
  EXPECT_THAT(told_, Contains(HasSubstr("as predicted: 8 rows in ")));  // the bucket of decode
  EXPECT_LT(share(), before / 2);
}

TEST(SeenTime, CountsLittleWhileOthersWantTheCores) {
  SeenTime seen;
  seen.add(100ms, 200ms, false);
  EXPECT_FALSE(seen.is_enough());
  seen.add(100ms, 160ms, true);
  EXPECT_EQ(seen.took, 240ms);
  EXPECT_FALSE(seen.is_enough());
  seen.add(5ms, 10ms, false);
  EXPECT_TRUE(seen.is_enough());
}

TEST_F(StoredPlanTest, IsLeftAloneWhereTheUserSaysWhoComputes) {
  keep_planned();
  options_.split = std::string("paired");
  ASSERT_TRUE(engine());
  EXPECT_THAT(told_, Not(Contains(HasSubstr("stored"))));
}

}  // namespace
}  // namespace troika::engine
