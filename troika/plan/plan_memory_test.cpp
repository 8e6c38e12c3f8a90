// What planning the memory of a pass may cost; that it is right is tested with the lowering.
#include <gtest/gtest.h>

#include "tests/repository.h"
#include "troika/base/clock.h"
#include "troika/plan/default_plan.h"
#include "troika/plan/lower.h"

namespace troika::plan {
namespace {

model::Model load() { return *model::Model::load(repository_path("tests/models/q4_0-small.gguf")); }

// A plan from elsewhere may cut a pass as finely as is allowed.
TEST(PlanMemory, AsManyChunksAsThereMayBeTakeBoundedTime) {
  const model::Model model = load();
  const graph::Graph graph = *graph::build(model);
  std::vector<device::DeviceInfo> infos(2);
  infos[0].name = fmt::format("{}", 'a');
  infos[1].name = fmt::format("{}", 'b');
  DefaultPlanOptions options;
  options.max_rows = kMaxChunks;
  options.split = *parse_split("paired:1/1", 2);
  const std::vector<DeviceRates> rates(2, {1, 1});
  Plan plan = default_plan(graph, infos, rates, options);
  RowsBucket& bucket = plan.buckets.back();
  bucket.chunks = {1};
  ASSERT_TRUE(check(plan, graph).has_value());
  const TimePoint begin = system_clock().now();
  const auto list = lower(plan, bucket, graph, bucket.max_rows, 1, infos);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->cut->blocks.size(), kMaxChunks);
  EXPECT_LT(to_seconds(system_clock().now() - begin), 30);
}

TEST(PlanMemory, MoreChunksOfMoreLayersAreRefused) {
  const model::Model model = load();
  graph::Graph graph = *graph::build(model);
  Plan plan = single_device_plan(graph, "a", kMaxChunks, "f32");
  plan.buckets[0].chunks = {1};
  EXPECT_TRUE(check(plan, graph).has_value());
  graph.n_layers = 32;
  const Status status = check(plan, graph);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("its chunks go through more than"), std::string::npos);
}

}  // namespace
}  // namespace troika::plan
