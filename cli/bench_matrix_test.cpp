#include "cli/bench_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troika::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchMatrix, Lists) {
  EXPECT_THAT(*parse_list("-p", "512", {0, 1000}), ElementsAre(512));
  EXPECT_THAT(*parse_list("-p", "1,2,4", {0, 1000}), ElementsAre(1, 2, 4));
  EXPECT_THAT(*parse_list("-p", "128-512+128", {0, 1000}), ElementsAre(128, 256, 384, 512));
  EXPECT_THAT(*parse_list("-p", "1-9*2,7", {0, 1000}), ElementsAre(1, 2, 4, 8, 7));
  EXPECT_THAT(*parse_list("-p", "3-5", {0, 1000}), ElementsAre(3, 4, 5));
  EXPECT_THAT(*parse_list("-t", "-1", {-1, 8}), ElementsAre(-1));
}

TEST(BenchMatrix, BadListsAreRefused) {
  for (const char* bad : {"", ",", "1,", "a", "5-3", "1-9+0", "1-9*1", "0-8*2", "1-", "1001",
                          "1-9+", "0-1000-5", "99999999999999999999"}) {
    EXPECT_FALSE(parse_list("-p", bad, {0, 1000}).has_value()) << bad;
  }
  EXPECT_THAT(parse_list("-p", "0-16000000", {0, INT64_MAX}).error().message, HasSubstr("10000"));
}

TEST(BenchMatrix, EveryCombinationIsMade) {
  BenchLists lists;
  lists.n_prompt = "16,32";
  lists.n_gen = "8";
  lists.prompt_gen = {"16,4"};
  lists.n_depth = "0,64";
  lists.threads = "1,2";
  lists.kv_types = "f32,f16";
  const auto matrix = make_matrix(lists);
  ASSERT_TRUE(matrix.has_value());
  EXPECT_EQ(matrix->settings.size(), 4u);
  std::vector<std::string> names;
  for (const BenchTest& test : matrix->tests) names.push_back(test.name());
  EXPECT_THAT(names, ElementsAre("pp16", "pp32", "tg8", "pp16+tg4", "pp16 @ d64", "pp32 @ d64",
                                 "tg8 @ d64", "pp16+tg4 @ d64"));
  EXPECT_EQ(matrix->context(), 96);
}

TEST(BenchMatrix, RefusesWhatCannotBeMeasured) {
  BenchLists nothing;
  nothing.n_prompt = nothing.n_gen = "0";
  EXPECT_THAT(make_matrix(nothing).error().message, HasSubstr("nothing to measure"));
  BenchLists type;
  type.kv_types = "q8_0";
  EXPECT_THAT(make_matrix(type).error().message, HasSubstr("allowed: f32, f16"));
  BenchLists pair;
  pair.prompt_gen = {"512"};
  EXPECT_THAT(make_matrix(pair).error().message, HasSubstr("not a pair"));
}

}  // namespace
}  // namespace troika::cli
