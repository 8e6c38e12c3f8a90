#include "troika/device/cpu/read_ahead.h"

#include <gtest/gtest.h>

#include "troika/device/cpu/testing/slices.h"

namespace troika::device::cpu {
namespace {

using testing::Slices;

int64_t pieces_of(const ReadAhead& ahead) {
  int64_t pieces = 0;
  while (ahead.fetch(pieces)) ++pieces;
  return pieces;
}

TEST(ReadAhead, NothingIsAskedForWhereNothingIsRead) {
  EXPECT_FALSE(ReadAhead().fetch(0));
  EXPECT_EQ(ReadAhead().after(0), nullptr);
}

TEST(ReadAhead, AfterAStepComesTheNextThatReadsWeights) {
  Slices slices(8);
  slices.add(0, 4, 0, 64);
  slices.add(4, 4, 0, 64);
  // Steps of their own, with one between them that reads none.
  std::vector<Step> steps(3);
  std::vector<Step> made = make_steps(slices.program);
  ASSERT_EQ(made.size(), 1U);
  steps[0].ops = {made[0].ops[0]};
  steps[1].ops = {BoundOp{}};
  graph::Op norm;
  norm.kind = graph::OpKind::kRmsNorm;
  steps[1].ops[0].op = &norm;
  steps[2].ops = {made[0].ops[1]};
  const ReadAhead ahead(steps, slices.program);
  EXPECT_EQ(ahead.after(0), slices.at(4, 0));
  EXPECT_EQ(ahead.after(1), slices.at(4, 0));
  EXPECT_EQ(ahead.after(2), nullptr);
}

TEST(ReadAhead, FetchesAllProductsInPieces) {
  Slices slices(256);  // of 17 KB: two pieces and some of a third
  slices.add(0, 256, 0, 64);
  slices.add(0, 1, 0, 64);
  EXPECT_EQ(pieces_of(ReadAhead(make_steps(slices.program), slices.program)), 4);
}

TEST(ReadAhead, FetchesNoMoreThanACacheKeeps) {
  Slices slices(64 * 1024);  // 4.25 MB
  slices.add(0, 64 * 1024, 0, 64);
  EXPECT_EQ(pieces_of(ReadAhead(make_steps(slices.program), slices.program)), 32);
}

// To ask for what lies between them would cost what the cut saves.
TEST(ReadAhead, EndsWhereRowsLieApart) {
  Slices slices(8);
  slices.add(0, 8, 0, 64);
  slices.add(0, 8, 32, 32);
  slices.add(0, 8, 0, 64);
  EXPECT_EQ(pieces_of(ReadAhead(make_steps(slices.program), slices.program)), 1);
}

}  // namespace
}  // namespace troika::device::cpu
