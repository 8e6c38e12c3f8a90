#include "cli/bench_row.h"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

using std::chrono::milliseconds;

BenchRow prefill_row() {
  BenchRow row;
  row.test = {100, 0, 0};
  row.samples = {milliseconds(100), milliseconds(100)};
  row.work = {2e9, 1e8};
  row.peak = {40, 10};
  return row;
}

TEST(BenchRow, MeanAndDeviationOfASample) {
  const Statistics three = statistics({1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(three.stddev, 1);
  EXPECT_DOUBLE_EQ(statistics({5}).stddev, 0);
  EXPECT_DOUBLE_EQ(statistics({}).mean, 0);
}

TEST(BenchRow, PrefillIsComparedWithArithmetic) {
  const BenchRow row = prefill_row();
  EXPECT_DOUBLE_EQ(row.tokens_per_second()[0], 1000);
  EXPECT_DOUBLE_EQ(row.gflops(), 20);  // 2e9 operations in 0.1 s
  EXPECT_DOUBLE_EQ(row.share_of_peak(), 0.5);
}

TEST(BenchRow, DecodeIsComparedWithMemory) {
  BenchRow row = prefill_row();
  row.test = {0, 100, 0};
  EXPECT_DOUBLE_EQ(row.gbps(), 1);  // 1e8 bytes in 0.1 s
  EXPECT_DOUBLE_EQ(row.share_of_peak(), 0.1);
  row.peak = {};
  EXPECT_DOUBLE_EQ(row.share_of_peak(), 0);
}

TEST(BenchRow, JsonHasTheNamesOfLlamaBench) {
  const Json json = to_json(prefill_row());
  EXPECT_EQ(json["test"], "pp100");
  EXPECT_EQ(json["avg_ns"], 100'000'000);
  EXPECT_EQ(json["stddev_ns"], 0);
  EXPECT_EQ(json["samples_ns"], Json({100'000'000, 100'000'000}));
  EXPECT_EQ(json["avg_ts"], 1000);
  EXPECT_EQ(json["bound_by"], "gflops");
}

}  // namespace
}  // namespace troika::cli
