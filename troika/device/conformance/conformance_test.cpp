// That the suite lets a right device pass, and no wrong one.
#include <gtest/gtest.h>

#include <map>

#include "troika/device/conformance/bounds.h"
#include "troika/device/conformance/run_case.h"
#include "troika/device/conformance/testing/reference_device.h"

namespace troika::device::conformance {
namespace {

using testing::Fault;
using testing::Precision;
using testing::ReferenceDevice;

struct Tally {
  int ran = 0;
  int failed = 0;
  double worst = 0;  // NMSE as a part of its bound
  std::string first;
};

// Stops at the first failure unless all are wanted.
Tally run_group(Device& device, const std::string& group, bool all = true) {
  Tally tally;
  for (const Case& c : cases_of(group, device.info())) {
    const Result<Outcome> outcome = run_case(device, c);
    if (outcome && !outcome->not_run.empty()) continue;
    ++tally.ran;
    if (outcome) tally.worst = std::max(tally.worst, outcome->nmse / outcome->bound);
    if (outcome && outcome->passed()) continue;
    if (tally.failed++ == 0) {
      tally.first = outcome ? fmt::format("{}: NMSE {} at {}, bound {}", c.name, outcome->nmse,
                                          outcome->place, outcome->bound)
                            : outcome.error().message;
    }
    if (!all) break;
  }
  return tally;
}

class Precise : public ::testing::TestWithParam<std::string> {};

TEST_P(Precise, ARightDevicePasses) {
  ReferenceDevice any_rows;
  ReferenceDevice fixed_rows(Fault::kNone, Precision::kDouble, {1, 32, 64, 128});
  for (ReferenceDevice* device : {&any_rows, &fixed_rows}) {
    const Tally tally = run_group(*device, GetParam());
    EXPECT_GT(tally.ran, 0);
    EXPECT_EQ(tally.failed, 0) << tally.first;
    // Double arithmetic, rounded once at the end.
    EXPECT_LT(tally.worst, 0.1);
  }
}

TEST_P(Precise, RoundingToHalfIsWithinItsOwnBoundsOnly) {
  ReferenceDevice half(Fault::kNone, Precision::kHalf);
  const Tally as_half = run_group(half, GetParam());
  EXPECT_EQ(as_half.failed, 0) << as_half.first;
  half.facts().exact = true;
  EXPECT_GT(run_group(half, GetParam(), false).failed, 0);
  ReferenceDevice brain(Fault::kNone, Precision::kBrain);
  EXPECT_GT(run_group(brain, GetParam(), false).failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Groups, Precise, ::testing::ValuesIn(groups()),
                         [](const auto& p) { return p.param; });

struct Wrong {
  Fault fault;
  std::string group;
};

class Faults : public ::testing::TestWithParam<Wrong> {};

TEST_P(Faults, AreNoticed) {
  ReferenceDevice device(GetParam().fault, Precision::kDouble, {1, 32, 64, 128});
  EXPECT_GT(run_group(device, GetParam().group, false).failed, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Faults,
    ::testing::Values(
        Wrong{Fault::kIgnoresOutputSlice, "mat_mul"}, Wrong{Fault::kIgnoresInputSlice, "mat_mul"},
        Wrong{Fault::kEightBitActivations, "mat_mul"}, Wrong{Fault::kWritesBesideWindow, "mat_mul"},
        Wrong{Fault::kWritesBehindLastRow, "mat_mul"}, Wrong{Fault::kWrongAtFullLength, "mat_mul"},
        Wrong{Fault::kGivesNan, "mat_mul"}, Wrong{Fault::kGivesTheSameForAnyInput, "mat_mul"},
        Wrong{Fault::kRefusesToCompile, "mat_mul"}, Wrong{Fault::kRefusesToRun, "mat_mul"},
        Wrong{Fault::kIgnoresFirstHead, "attention"}, Wrong{Fault::kIgnoresFirstHead, "kv_write"},
        Wrong{Fault::kIgnoresHeadGroups, "attention"},
        Wrong{Fault::kIgnoresBlockTables, "attention"},
        Wrong{Fault::kIgnoresBlockTables, "kv_write"}, Wrong{Fault::kSeesOneKeyMore, "attention"},
        Wrong{Fault::kWritesPadRowToCache, "kv_write"}, Wrong{Fault::kIgnoresEps, "rms_norm"},
        Wrong{Fault::kIgnoresFirstLogitRow, "gather_rows"}, Wrong{Fault::kSwapsRopePairs, "rope"},
        Wrong{Fault::kAddsOnlyTwo, "add"}, Wrong{Fault::kLeavesMiddleOutputs, "stage"},
        Wrong{Fault::kWritesBesideWindow, "rms_norm"}, Wrong{Fault::kGivesNan, "concat"},
        Wrong{Fault::kGivesNan, "embed"}, Wrong{Fault::kGivesNan, "rope_table"},
        Wrong{Fault::kGivesNan, "silu_mul"}),
    [](const auto& p) {
      return fmt::format("{}_{}", p.param.group, static_cast<int>(p.param.fault));
    });

TEST(RunCase, AHangingDeviceIsAbandoned) {
  ReferenceDevice device(Fault::kHangs);
  const std::vector<Case> cases = cases_of("add", device.info());
  RunOptions options;
  options.task_timeout = std::chrono::milliseconds(20);
  const auto outcome = run_case(device, cases.front(), options);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kTimeout);
  EXPECT_NE(outcome.error().message.find("reference, add"), std::string::npos)
      << outcome.error().message;
  EXPECT_FALSE(device.stuck());
  EXPECT_FALSE(run_case(device, cases.front(), options).has_value());
}

TEST(RunCase, SaysWhyACaseMeansNothingToADevice) {
  ReferenceDevice device(Fault::kNone, Precision::kDouble, {4, 8});
  device.leave_out(graph::OpKind::kKvWrite);
  std::map<std::string, int> reasons;
  for (const char* group : {"attention", "kv_write"}) {
    for (const Case& c : cases_of(group, device.info())) {
      const auto outcome = run_case(device, c);
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
      ++reasons[outcome->not_run];
    }
  }
  EXPECT_GT(reasons[""], 0);
  EXPECT_GT(reasons["the device does not compute kv_write"], 0);
  device.leave_out({});
  for (const Case& c : cases_of("attention", device.info())) {
    ++reasons[run_case(device, c)->not_run];
  }
  EXPECT_EQ(reasons["more rows than the longest standard length"], 1);
}

// Cases fit the facts: cuts on tiles, rows within the lengths, blocks in order where no tables are
// read.
TEST(Catalogue, MindsTheFactsOfADevice) {
  DeviceInfo info;
  info.n_tile = 64;
  info.k_tile = 128;
  info.standard_rows = {1, 32, 64};
  info.paged_attention = false;
  int slices = 0;
  for (const std::string& group : groups()) {
    for (const Case& c : cases_of(group, info)) {
      const auto problem = c.build();
      for (const graph::Op& op : problem->graph.ops) {
        EXPECT_EQ(op.n_begin % info.n_tile, 0) << c.name;
        EXPECT_EQ(op.k_begin % info.k_tile, 0) << c.name;
        slices += op.n_begin + op.k_begin > 0 ? 1 : 0;
      }
      for (const Pass& pass : problem->passes) {
        EXPECT_LE(pass.rows_needed(), 64) << c.name;
        EXPECT_GT(pass.n_rows(), 0) << c.name;
      }
      for (const auto& table : problem->block_tables) {
        for (size_t i = 1; i < table.size(); ++i) EXPECT_EQ(table[i], table[i - 1] + 1);
      }
    }
  }
  EXPECT_GT(slices, 50);
}

TEST(Catalogue, EveryCaseHasANameOfItsOwn) {
  for (const std::string& group : groups()) {
    std::vector<std::string> names;
    for (const Case& c : cases_of(group, DeviceInfo{})) {
      EXPECT_EQ(c.group, group);
      names.push_back(c.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    EXPECT_EQ(twice, names.end()) << *twice;
  }
}

TEST(Nmse, TakesTheWorstRow) {
  std::vector<double> expected(64 * 10, 1.0);
  std::vector<float> got(expected.begin(), expected.end());
  EXPECT_EQ(nmse(got, expected, 64), 0);
  for (size_t i = 0; i < 64; ++i) got[i] = 1.1f;
  EXPECT_NEAR(nmse(got, expected, 64), 0.01, 1e-4);
  // Short rows say little each: all together.
  EXPECT_NEAR(nmse(got, expected, 8), 0.001, 1e-5);
  got[5] = std::nanf("");
  EXPECT_TRUE(std::isinf(nmse(got, expected, 64)));
}

}  // namespace
}  // namespace troika::device::conformance
