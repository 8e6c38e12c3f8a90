#include "troika/forecast/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "troika/forecast/error_band.h"
#include "troika/forecast/sweep.h"
#include "troika/soc/catalogue.h"

namespace troika::forecast {
namespace {

soc::Figure figure(double value) { return {value, soc::FigureKind::kFitted, ""}; }

// Four layers, so that a test takes milliseconds.
const ShapedModel& model() {
  static const ShapedModel shaped = *shaped_model("2048,4,16,8,5632,32000");
  return shaped;
}

soc::Soc phone() { return *soc::find("snapdragon-8-gen-3"); }

Question question(const std::string& strategy = "heteroinfer") {
  Question question;
  question.strategy = strategy;
  question.budget.evaluations = 50;
  return question;
}

Answer answer(const soc::Soc& soc, const Question& asked) {
  auto result = forecast(model(), cost::DescribedCost(soc), asked);
  if (result) return *result;
  ADD_FAILURE() << result.error().message;
  return {};
}

std::string refusal(const soc::Soc& soc, const Question& asked, ErrorCode code) {
  const auto result = forecast(model(), cost::DescribedCost(soc), asked);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, code);
  return result.error().message;
}

TEST(Forecast, ItsFiguresFitEachOther) {
  for (const char* strategy : {"single:gpu", "layer", "heteroinfer", "troika"}) {
    const Answer a = answer(phone(), question(strategy));
    EXPECT_NEAR(a.prefill_tok_s, 256 / a.ttft_ms * 1e3, 1e-6 * a.prefill_tok_s);
    EXPECT_NEAR(a.decode_tok_s, 1e3 / a.tpot_ms, 1e-6 * a.decode_tok_s);
    EXPECT_GT(a.bound_ms(), 0);
    EXPECT_LE(a.bound_ms(), a.ttft_ms * (1 + 1e-6)) << strategy;
    // Idle power all the time, and what the units drew.
    const double ms = a.ttft_ms + 32 * a.tpot_ms;
    double units = 0;
    double prefill_share = 0;
    double decode_share = 0;
    for (const UnitUse& unit : a.units) {
      units += unit.energy_j;
      prefill_share += unit.prefill_share;
      decode_share += unit.decode_share;
      EXPECT_LE(unit.prefill_busy_ms, a.ttft_ms * (1 + 1e-9));
      EXPECT_LE(unit.decode_busy_ms, a.tpot_ms * (1 + 1e-9));
    }
    EXPECT_NEAR(a.energy_j, units + phone().idle_power * ms / 1e3, 1e-6 * a.energy_j) << strategy;
    EXPECT_NEAR(a.power_w, a.energy_j / ms * 1e3, 1e-6 * a.power_w);
    EXPECT_NEAR(prefill_share, 1, 1e-9);
    EXPECT_NEAR(decode_share, 1, 1e-9);
  }
}

TEST(Forecast, TheSameQuestionHasTheSameAnswer) {
  const Answer a = answer(phone(), question("troika"));
  const Answer b = answer(phone(), question("troika"));
  EXPECT_EQ(a.ttft_ms, b.ttft_ms);
  EXPECT_EQ(a.tpot_ms, b.tpot_ms);
  EXPECT_EQ(a.energy_j, b.energy_j);
}

TEST(Forecast, RooflineIsNoSlowerThanContended) {
  Question asked = question();
  const Answer contended = answer(phone(), asked);
  asked.fidelity = planner::Fidelity::kRoofline;
  const Answer roofline = answer(phone(), asked);
  EXPECT_LT(roofline.ttft_ms, contended.ttft_ms);
  EXPECT_LE(roofline.tpot_ms, contended.tpot_ms);
}

TEST(Forecast, BlockingCallsCostWhatTheyCostEachTime) {
  Question asked = question();
  asked.sync = sim::Sync::kPredict;
  const Answer fast = answer(phone(), asked);
  asked.plan_sync = asked.sync;
  asked.sync = sim::Sync::kBlocking;
  const Answer slow = answer(phone(), asked);
  // The same plan, so that joins are as many: each costs 340 us more, as does none by itself.
  EXPECT_GT(slow.ttft_ms, fast.ttft_ms + 4 * 0.34);
  EXPECT_GE(slow.tpot_ms, fast.tpot_ms);
}

TEST(Forecast, AnotherLoadSlowsItsUnitAndLeavesTheRestAlone) {
  Question asked = question("single:gpu");
  const Answer alone = answer(phone(), asked);
  asked.load = Load{"gpu", 0.5, 0};
  EXPECT_NEAR(answer(phone(), asked).ttft_ms, 2 * alone.ttft_ms, 0.02 * alone.ttft_ms);
  asked.load = Load{"npu", 0.5, 0};
  EXPECT_DOUBLE_EQ(answer(phone(), asked).ttft_ms, alone.ttft_ms);
  asked.load = Load{"gpu", 1, 0};
  EXPECT_NE(refusal(phone(), asked, ErrorCode::kInvalidArgument).find("a load of 1"),
            std::string::npos);
  asked.load = Load{"dsp", 0.5, 0};
  EXPECT_NE(refusal(phone(), asked, ErrorCode::kInvalidArgument).find("'dsp'"), std::string::npos);
}

// A unit that has all of the pass leaves a game nothing; one that often waits leaves it much.
TEST(Forecast, FramesStarveBesideAPassThatIsSubmittedAtOnce) {
  Question asked = question("single:gpu");
  const Answer alone = answer(phone(), asked);
  asked.frames = {{"gpu", 60, 4, 5}};
  const Answer starved = answer(phone(), asked);
  ASSERT_EQ(starved.prefill_frames.size(), 1u);
  EXPECT_LT(starved.prefill_frames[0], 0.1);
  EXPECT_NEAR(starved.ttft_ms, alone.ttft_ms, 0.01 * alone.ttft_ms);
  asked.strategy = "layer";
  const Answer layer = answer(phone(), asked);
  EXPECT_GT(layer.prefill_frames[0], 0.7);
  asked.frames.clear();
  EXPECT_GT(layer.ttft_ms, answer(phone(), asked).ttft_ms);
  asked.frames = {{"gpu", 0, 4, 5}};
  EXPECT_NE(refusal(phone(), asked, ErrorCode::kInvalidArgument).find("0 frames a second"),
            std::string::npos);
}

TEST(Forecast, NoiseSpreadsTheTimesAndHasASeed) {
  Question asked = question();
  const Answer still = answer(phone(), asked);
  EXPECT_EQ(still.ttft_spread.mean_ms, still.ttft_ms);
  asked.variation = {0.05, 0.1, 32};
  const Answer varied = answer(phone(), asked);
  EXPECT_EQ(varied.ttft_ms, still.ttft_ms);
  EXPECT_NEAR(varied.ttft_spread.mean_ms, still.ttft_ms, 0.1 * still.ttft_ms);
  EXPECT_GT(varied.ttft_spread.p90_ms, varied.ttft_spread.mean_ms);
  EXPECT_EQ(answer(phone(), asked).tpot_spread.p90_ms, varied.tpot_spread.p90_ms);
  asked.budget.seed = 2;
  EXPECT_NE(answer(phone(), asked).ttft_spread.p90_ms, varied.ttft_spread.p90_ms);
}

TEST(Forecast, TurboHastensThePromptUntilItsEnergyIsSpent) {
  soc::Soc soc = phone();
  const Answer plain = answer(soc, question());
  soc.turbo = soc::Turbo{figure(1.5), figure(1e6), {}};
  const Answer all = answer(soc, question());
  EXPECT_LT(all.ttft_ms, plain.ttft_ms / 1.2);
  soc.turbo->budget = figure(0.5 * all.prefill_energy_j);
  const Answer half = answer(soc, question());
  EXPECT_GT(half.ttft_ms, all.ttft_ms * 1.05);
  EXPECT_LT(half.ttft_ms, plain.ttft_ms);
  // Nothing is left for decode.
  EXPECT_DOUBLE_EQ(half.tpot_ms, plain.tpot_ms);
  // A plan that is sure to be the same: heteroinfer's rule may choose another one for other clocks.
  const Answer gpu_plain = answer(phone(), question("single:gpu"));
  soc.turbo->budget = figure(1e6);
  EXPECT_LE(answer(soc, question("single:gpu")).tpot_ms, gpu_plain.tpot_ms);
}

TEST(Forecast, MemoryAndSessionsAreLimits) {
  soc::Soc soc = phone();
  const Answer plain = answer(soc, question());
  soc.memory.capacity = figure(0.5 * plain.memory_gb);
  EXPECT_NE(refusal(soc, question(), ErrorCode::kUnsupported).find("the model needs"),
            std::string::npos);
  soc.memory.capacity.reset();
  soc::Unit& npu = soc.units[*soc.unit("npu")];
  npu.session_memory = figure(plain.units[*soc.unit("npu")].weights_gb / 2.5);
  EXPECT_NE(refusal(soc, question(), ErrorCode::kUnsupported).find("sessions"), std::string::npos);
  npu.sessions = figure(3);
  EXPECT_EQ(answer(soc, question()).units[*soc.unit("npu")].sessions, 3);
}

TEST(Forecast, TheStacksBitsAreTakenUnlessOthersAreGiven) {
  soc::Soc soc = phone();
  soc.stored_weights = soc::StoredWeights{figure(8), figure(16)};
  Question asked = question("single:gpu");
  const Answer stored = answer(soc, asked);
  EXPECT_EQ(stored.weight_bits, 8);
  EXPECT_EQ(stored.head_bits, 16);
  asked.weight_bits = 4;
  const Answer less = answer(soc, asked);
  EXPECT_EQ(less.head_bits, 4);
  EXPECT_LT(less.tpot_ms, 0.6 * stored.tpot_ms);
  EXPECT_LT(less.memory_gb, 0.6 * stored.memory_gb);
}

TEST(Forecast, ItsTraceHasBothPassesAndSaysThatItIsSimulated) {
  Question asked = question();
  asked.with_trace = true;
  const Answer a = answer(phone(), asked);
  ASSERT_TRUE(a.trace.has_value());
  EXPECT_TRUE(a.trace->simulated);
  const auto last_of = [&](int64_t pass) {
    TimePoint last{};
    for (const TraceEvent& event : a.trace->events) {
      if (event.pass == pass) last = std::max(last, event.end);
    }
    return std::chrono::duration<double, std::milli>(last - TimePoint()).count();
  };
  EXPECT_NEAR(last_of(0), a.ttft_ms, 1e-3);
  EXPECT_NEAR(last_of(1), a.ttft_ms + a.tpot_ms, 0.05 * a.tpot_ms);
}

TEST(Forecast, LengthsHaveBounds) {
  Question asked = question();
  asked.prompt = 0;
  refusal(phone(), asked, ErrorCode::kInvalidArgument);
  asked = question("fastest");
  EXPECT_NE(refusal(phone(), asked, ErrorCode::kInvalidArgument).find("'fastest' is not known"),
            std::string::npos);
}

TEST(ErrorBand, IsThatOfChipAndStack) {
  const char* text = R"({"version": 1, "bands": [
    {"soc": "a", "stack": "default", "cases": 12, "mean_error_pct": 7.5, "largest_error_pct": 20},
    {"soc": "a", "stack": "b", "cases": 3, "mean_error_pct": 9, "largest_error_pct": 10}]})";
  const auto band = error_band_from(text, "a", "b");
  ASSERT_TRUE(band.has_value()) << band.error().message;
  EXPECT_EQ((*band)->mean_error_pct, 9);
  EXPECT_EQ((*band)->cases, 3);
  EXPECT_FALSE((*error_band_from(text, "b", "b")).has_value());
  const auto broken = error_band_from(
      R"({"version": 1, "bands": [{"soc": "a", "stack": "b", "cases": 0}]})", "a", "b");
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().message.find("validation.bands[0].cases is 0"), std::string::npos);
  for (const EmbeddedJson& file : validations()) {
    EXPECT_TRUE(error_band_from(*file.json, "a", "b").has_value()) << file.name;
  }
}

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    chips_.push_back({"default", phone()});
    models_.push_back({"tiny", *shaped_model("2048,4,16,8,5632,32000")});
    for (const int64_t prompt : {17, 64, 200, 256}) {
      for (const char* strategy : {"single:gpu", "layer", "single:dsp"}) {
        cases_.push_back({0, 0, prompt, 4, strategy});
      }
    }
    options_.question.budget.evaluations = 10;
  }

  std::map<std::string, double> rows(size_t threads) {
    std::map<std::string, double> found;
    options_.threads = threads;
    const auto row = [&](const SweepCase& one, const Result<Answer>& answer) -> Status {
      found[one.strategy + std::to_string(one.prompt)] = answer ? answer->ttft_ms : -1;
      return {};
    };
    EXPECT_TRUE(sweep(chips_, models_, cases_, options_, row).has_value());
    return found;
  }

  std::vector<SweepChip> chips_;
  std::vector<SweepModel> models_;
  std::vector<SweepCase> cases_;
  SweepOptions options_;
};

TEST_F(SweepTest, GivesEveryCaseWhateverTheThreads) {
  const auto one = rows(1);
  EXPECT_EQ(one.size(), cases_.size());
  EXPECT_EQ(one.at("single:dsp64"), -1);
  EXPECT_GT(one.at("layer64"), 0);
  EXPECT_EQ(one, rows(4));
}

TEST_F(SweepTest, StopsWhenToldAndOnAnError) {
  std::atomic<bool> stop = false;
  options_.stop = &stop;
  size_t done = 0;
  auto row = [&](const SweepCase&, const Result<Answer>&) -> Status {
    if (++done == 3) stop = true;
    return {};
  };
  EXPECT_TRUE(sweep(chips_, models_, cases_, options_, row).has_value());
  EXPECT_EQ(done, 3u);
  stop = false;
  const auto fails = [](const SweepCase&, const Result<Answer>&) -> Status {
    return make_error(ErrorCode::kIo, "full");
  };
  EXPECT_FALSE(sweep(chips_, models_, cases_, options_, fails).has_value());
  cases_[0].model = 7;
  EXPECT_FALSE(sweep(chips_, models_, cases_, options_, row).has_value());
}

}  // namespace
}  // namespace troika::forecast
