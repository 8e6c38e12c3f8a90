#include "troika/plan/give_to_others.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/repository.h"
#include "troika/model/model.h"
#include "troika/plan/default_plan.h"

namespace troika::plan {
namespace {

using graph::OpKind;
using graph::Stage;

class GiveToOthers : public ::testing::Test {
 protected:
  GiveToOthers()
      : model_(*model::Model::load(repository_path("tests/models/q4_0-small.gguf"))),
        graph_(*graph::build(model_)) {
    device::DeviceInfo a;
    a.name = "a";
    device::DeviceInfo b;
    b.name = "b";
    const std::vector<device::DeviceInfo> infos = {a, b};
    const std::vector<DeviceRates> rates = {{1, 1}, {1, 1}};
    DefaultPlanOptions options;
    options.max_rows = 8;
    plan_ = default_plan(graph_, infos, rates, options);
  }

  // The placement of the one bucket that holds for a product, or for the rest of a stage.
  const Placement& placement(Stage stage, std::string_view op) const {
    const auto& all = plan_.buckets.front().placements;
    const auto find = [&](std::string_view name) {
      return std::find_if(all.begin(), all.end(),
                          [&](const Placement& p) { return p.stage == stage && p.op == name; });
    };
    const auto own = find(op);
    return own != all.end() ? *own : *find("");
  }

  std::vector<std::string> devices(Stage stage, std::string_view op) const {
    std::vector<std::string> names;
    for (const Part& part : placement(stage, op).parts) names.push_back(part.device);
    return names;
  }

  // "b" cannot compute these.
  Result<std::vector<std::string>> give(const std::function<bool(graph::OpId)>& unable) {
    return give_to_others(
        plan_, graph_, [&](size_t device, graph::OpId op) { return device == 0 || !unable(op); });
  }
  bool is_product(graph::OpId id, std::string_view name) const {
    return graph_.op(id).kind == OpKind::kMatMul && product_name(graph_, id) == name;
  }

  const std::vector<std::string> a_ = {"a"};
  const std::vector<std::string> both_ = {"a", "b"};
  model::Model model_;
  graph::Graph graph_;
  Plan plan_;
};

TEST_F(GiveToOthers, LeavesAPlanAloneIfAllCanComputeAll) {
  const std::string before = to_json(plan_);
  const auto lines = give([](graph::OpId) { return false; });
  ASSERT_TRUE(lines.has_value()) << lines.error().message;
  EXPECT_TRUE(lines->empty());
  EXPECT_EQ(to_json(plan_), before);
}

TEST_F(GiveToOthers, AProductGoesAndTheRestStays) {
  const auto lines = give([&](graph::OpId id) { return is_product(id, "down"); });
  ASSERT_TRUE(lines.has_value()) << lines.error().message;
  EXPECT_THAT(*lines, ::testing::ElementsAre("b cannot compute down"));
  EXPECT_TRUE(check(plan_, graph_).has_value());
  EXPECT_EQ(devices(Stage::kG2, "down"), a_);
  EXPECT_EQ(devices(Stage::kG2, "gate"), both_);
  EXPECT_EQ(placement(Stage::kAttention, "").cut, Cut::kPaired);
}

TEST_F(GiveToOthers, WithoutQueriesADeviceKeepsItsShareOfAttention) {
  ASSERT_EQ(placement(Stage::kAttention, "").cut, Cut::kPaired);
  const auto lines = give([&](graph::OpId id) { return is_product(id, "q"); });
  ASSERT_TRUE(lines.has_value()) << lines.error().message;
  EXPECT_TRUE(check(plan_, graph_).has_value());
  EXPECT_EQ(devices(Stage::kG1, "q"), a_);
  EXPECT_EQ(devices(Stage::kG1, "k"), both_);
  EXPECT_EQ(devices(Stage::kAttention, ""), both_);
  EXPECT_EQ(placement(Stage::kAttention, "").cut, Cut::kWeightCentric);
}

TEST_F(GiveToOthers, WhatNobodyCanComputeIsAnError) {
  const auto lines = give_to_others(plan_, graph_, [&](size_t, graph::OpId id) {
    return graph_.op(id).kind != OpKind::kAttention;
  });
  ASSERT_FALSE(lines.has_value());
  EXPECT_EQ(lines.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace troika::plan
