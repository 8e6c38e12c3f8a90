#include "troika/engine/drill.h"

#include <gtest/gtest.h>

#include "troika/base/cores.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

TEST(Drill, EveryFaultLeavesTheAnswerAsItIs) {
  const auto bytes = model::testing::TinyModel().bytes();
  DrillOptions options;
  options.load = [&] { return model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}); };
  for (int i = 0; i < 20; ++i) options.prompt.push_back((i * 37 + 11) % 300);
  options.cores = allowed_cores();
  options.answer_tokens = 6;
  options.patience = std::chrono::seconds(1);
  int seen = 0;
  const auto results = run_drill(options, [&](const DrillResult&) { ++seen; });
  ASSERT_TRUE(results.has_value()) << results.error().message;
  EXPECT_EQ(seen, static_cast<int>(results->size()));
  // Eight faults at load, for those that only a probe survives are left out without one; five
  // faults twice each; four of a static device.
  EXPECT_EQ(results->size(), 22u);
  for (const DrillResult& result : *results) {
    EXPECT_TRUE(result.passed) << result.fault << " of " << result.device << " at " << result.when
                               << ": " << result.outcome;
  }
}

TEST(Drill, WhatCannotBeAnsweredAtAllIsAnError) {
  DrillOptions options;
  options.load = [] {
    return Result<model::Model>(make_error(ErrorCode::kNotFound, "there is no model"));
  };
  options.prompt = {1};
  EXPECT_EQ(run_drill(options, [](const DrillResult&) {}).error().code,
            ErrorCode::kInvalidArgument);
  options.cores = {0};
  EXPECT_EQ(run_drill(options, [](const DrillResult&) {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troika::engine
