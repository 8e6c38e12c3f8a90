#include "troika/engine/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "troika/engine/engine.h"
#include "troika/engine/rates_store.h"
#include "troika/graph/graph.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

using namespace std::chrono_literals;
using runtime::WorkPart;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr auto kMlp = static_cast<size_t>(WorkPart::kMlp);
constexpr auto kHead = static_cast<size_t>(WorkPart::kHead);

SeenWork decode_of(int64_t passes, int64_t macs, Duration busy) {
  SeenWork seen;
  seen.decode_passes = passes;
  seen.decode[kMlp] = {macs, busy};
  return seen;
}

const std::vector<plan::DeviceRates> kKnown = {{10, 1, 1, 1, 1}, {20, 2, 2, 2, 2}};

TEST(Balance, LearnsThePartsThatWereSeen) {
  // 600 multiply-adds in 2 s, 200 in 1 s.
  const std::vector<SeenWork> seen = {decode_of(32, 600, 2s), decode_of(32, 200, 1s)};
  const auto learnt = learnt_rates(seen, kKnown);
  ASSERT_EQ(learnt.size(), 2u);
  EXPECT_EQ(learnt[0], (plan::DeviceRates{10, 1, 1, 300, 1}));
  EXPECT_EQ(learnt[1], (plan::DeviceRates{20, 2, 2, 200, 2}));
  // 800 at 500 a second take 1.6 s, not 2.
  EXPECT_NEAR(saved_by_balance(seen).decode, 0.2, 1e-12);
  EXPECT_EQ(saved_by_balance(seen).prefill, 0);
}

TEST(Balance, LearnsPrefillByItself) {
  std::vector<SeenWork> seen(2);
  seen[0].prefill = {900, 300ms};
  seen[1].prefill = {900, 600ms};
  const auto learnt = learnt_rates(seen, kKnown);
  EXPECT_NEAR(learnt[0].prefill, 3000, 1e-9);
  EXPECT_NEAR(learnt[1].prefill, 1500, 1e-9);
  EXPECT_EQ(learnt[0].mlp, 1);
  // 1800 at 4500 a second take 0.4 s, not 0.6.
  EXPECT_NEAR(saved_by_balance(seen).prefill, 1.0 / 3, 1e-12);
  EXPECT_EQ(saved_by_balance(seen).decode, 0);
}

TEST(Balance, LearnsNothingFromLittle) {
  std::vector<SeenWork> seen = {decode_of(31, 600, 2s), decode_of(31, 200, 1s)};
  seen[0].prefill = seen[1].prefill = {900, 249ms};
  EXPECT_EQ(learnt_rates(seen, kKnown), kKnown);
  EXPECT_EQ(saved_by_balance(seen).decode, 0);
  EXPECT_EQ(saved_by_balance(seen).prefill, 0);
  EXPECT_EQ(saved_by_balance({}).decode, 0);
  EXPECT_TRUE(learnt_rates({}, {}).empty());
}

TEST(Balance, LeavesAPartThatADeviceDidNothingOf) {
  std::vector<SeenWork> seen = {decode_of(40, 600, 2s), decode_of(40, 0, 0s)};
  seen[0].decode[kHead] = {100, 1s};
  seen[1].decode[kHead] = {100, 1s};
  const auto learnt = learnt_rates(seen, kKnown);
  EXPECT_EQ(learnt[0], (plan::DeviceRates{10, 1, 1, 1, 100}));
  EXPECT_EQ(learnt[1], (plan::DeviceRates{20, 2, 2, 2, 100}));
  EXPECT_EQ(saved_by_balance(seen).decode, 0);
}

TEST(Balance, AddsUpAnswers) {
  runtime::DeviceWork work;
  work.decode[kMlp] = {50, 1s};
  work.prefill = {7, 2s};
  SeenWork seen;
  seen.add(work, 20);
  seen.add(work, 5);
  EXPECT_EQ(seen.decode_passes, 25);
  EXPECT_EQ(seen.decode[kMlp].macs, 100);
  EXPECT_EQ(seen.decode[kMlp].busy, 2s);
  EXPECT_EQ(seen.prefill.macs, 14);
}

TEST(Balance, OfATenthOfTheTimeOthersDisturb) {
  EXPECT_FALSE(was_disturbed(10ms, 100ms));
  EXPECT_TRUE(was_disturbed(11ms, 100ms));
}

TEST(Balance, DoesNotTryAgainWhatCannotBeHad) {
  Tried tried;
  EXPECT_FALSE(try_new_shares({0.02, 0.02}, tried));
  EXPECT_TRUE(try_new_shares({0.2, 0.2}, tried));
  EXPECT_FALSE(try_new_shares({0.18, 0.21}, tried));
  EXPECT_TRUE(try_new_shares({0.04, 0.21}, tried));
  EXPECT_FALSE(try_new_shares({0.03, 0.1}, tried));
}

TEST(Balance, TriesAPhaseThatIsSeenLater) {
  Tried tried;
  EXPECT_TRUE(try_new_shares({0.1, 0}, tried));
  // Of a first prompt nothing counts: its shares are tried when a second one shows them wrong.
  EXPECT_TRUE(try_new_shares({0.01, 0.18}, tried));
  EXPECT_EQ(tried.decode, 0.1);
  EXPECT_EQ(tried.prefill, 0.18);
}

TEST(Balance, TriesAPhaseAFewTimesWhateverTheOtherDoes) {
  Tried tried;
  int steps = 0;
  for (int i = 0; i < 100; ++i) steps += try_new_shares({0.03, i % 2 ? 0.03 : 0.9}, tried) ? 1 : 0;
  EXPECT_LE(steps, 3);
}

class BalancedEngineTest : public ::testing::Test {
 protected:
  BalancedEngineTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
    options_.devices = "cpu@0,systolic@0";
    options_.check = false;
    options_.context = 128;
    options_.batch_rows = 16;
    options_.cache_folder = folder_;
    options_.note = [this](const std::string& line) { notes_.push_back(line); };
  }
  ~BalancedEngineTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<Engine> engine() const {
    auto made = Engine::create(*model::Model::load(*model::memory_source(bytes_), "tiny.gguf", {}),
                               options_);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "troika-balance-XXXXXX").string();
  std::vector<std::byte> bytes_ = model::testing::TinyModel().bytes();
  std::vector<std::string> notes_;
  EngineOptions options_;
};

TEST_F(BalancedEngineTest, GivenSharesStay) {
  options_.split = "decode=paired:1/1,prefill=paired:1/1";
  const auto one = engine();
  ASSERT_TRUE(one);
  const std::string before = one->plan().reason;
  ASSERT_TRUE(one->time_decode(64, 0).has_value());
  ASSERT_TRUE(one->balance().has_value());
  EXPECT_EQ(one->plan().reason, before);
  EXPECT_THAT(notes_, ::testing::Not(Contains(HasSubstr("rates"))));
}

// Rates that say the opposite of what is: the software NPU is many times slower than the cpu.
TEST_F(BalancedEngineTest, WrongSharesAreMendedAndRemembered) {
  std::vector<plan::DeviceRates> found;
  // Where others want the core all the time nothing may be learnt.
  for (int attempt = 0; attempt < 20 && found.empty(); ++attempt) {
    std::filesystem::remove_all(folder_ + "/rates");
    notes_.clear();
    auto one = engine();
    ASSERT_TRUE(one);
    const RatesStore store(folder_);
    const graph::Graph graph = *graph::build(one->model());
    const std::string identity = rates_identity(graph, one->devices(), options_.build);
    const std::vector<plan::DeviceRates> wrong = {{1, 1, 1, 1, 1}, {3, 3, 3, 3, 3}};
    ASSERT_TRUE(store.save(identity, wrong).has_value());
    one = engine();
    ASSERT_TRUE(one);
    ASSERT_THAT(one->plan().reason, HasSubstr("decode paired: cpu@0 25 %"));
    ASSERT_TRUE(one->time_decode(64, 0).has_value());
    ASSERT_TRUE(one->balance().has_value());
    if (one->plan().reason.find("decode paired: cpu@0 25 %") != std::string::npos) continue;
    EXPECT_THAT(notes_, Contains(HasSubstr("new shares, to save")));
    found = store.find(identity, 2)->rates;
    EXPECT_TRUE(one->time_decode(4, 0).has_value());  // on the new shares
  }
  if (found.empty()) GTEST_SKIP() << "others wanted the cores in each of 20 tries";
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GT(found[0].mlp, found[1].mlp);
}

}  // namespace
}  // namespace troika::engine
