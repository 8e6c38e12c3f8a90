// That the catalogue has the sizes at which devices go wrong, for every operator and type.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "troika/device/conformance/catalogue.h"

namespace troika::device::conformance {
namespace {

using graph::Op;
using graph::OpKind;
using model::TensorType;

// What the cases of one operator and type have.
struct Sizes {
  std::set<int64_t> rows;
  std::set<int64_t> heads;
  bool odd = false;  // a width that is no multiple of 64, unless a row is whole blocks of such
};

std::vector<TensorType> all_types() {
  std::vector<TensorType> types;
  for (uint32_t id = 0; id < 256; ++id) {
    if (const auto traits = model::traits_of(id)) types.push_back(traits->type);
  }
  return types;
}

bool reads_weights(OpKind kind) { return kind == OpKind::kMatMul || kind == OpKind::kEmbed; }

DeviceInfo any_rows() { return {}; }

DeviceInfo static_lengths() {
  DeviceInfo info;
  info.standard_rows = {1, 32, 64, 128};
  info.n_tile = 32;
  info.k_tile = 32;
  info.exact = false;
  return info;
}

DeviceInfo one_length() {
  DeviceInfo info;
  info.standard_rows = {64};
  info.paged_attention = false;
  return info;
}

bool has_odd_width(const Problem& problem, const Op& op) {
  const auto odd = [&](graph::TensorId id) { return problem.graph.tensor(id).width % 64 != 0; };
  return (op.output >= 0 && odd(op.output)) || std::any_of(op.inputs.begin(), op.inputs.end(), odd);
}

// Then every row's width is a multiple of 64.
bool has_wide_blocks(const Op& op) {
  return op.kind == OpKind::kEmbed && model::traits(op.weight->type).block_weights % 64 == 0;
}

using Key = std::pair<OpKind, std::string>;

Key key_of(const Problem& problem, const Op& op) {
  if (reads_weights(op.kind)) return {op.kind, std::string(model::traits(op.weight->type).name)};
  if (op.kind == OpKind::kKvWrite || op.kind == OpKind::kAttention) {
    return {op.kind, problem.kv.layout.type == KvType::kF16 ? "KV F16" : "KV F32"};
  }
  return {op.kind, ""};
}

std::map<Key, Sizes> sizes_of(const std::string& group, const DeviceInfo& info) {
  std::map<Key, Sizes> sizes;
  for (const Case& c : cases_of(group, info)) {
    const auto problem = c.build();
    for (const graph::OpId id : problem->program.ops) {
      const Op& op = problem->graph.op(id);
      Sizes& found = sizes[key_of(*problem, op)];
      for (const Pass& pass : problem->passes) found.rows.insert(pass.n_rows());
      found.heads.insert(op.heads.n_heads);
      found.odd = found.odd || has_odd_width(*problem, op) || has_wide_blocks(op);
    }
  }
  return sizes;
}

std::vector<int64_t> expected_rows(const DeviceInfo& info) {
  if (info.standard_rows == std::vector<int64_t>{64}) return {1, 63, 64};
  return {1, 31, 32, 33};
}

class Coverage : public ::testing::TestWithParam<DeviceInfo (*)()> {};

TEST_P(Coverage, EveryOperatorAndTypeHasOddSizes) {
  const DeviceInfo info = GetParam()();
  for (const std::string& group : groups()) {
    if (group == "stage") continue;
    std::set<std::string> types;
    for (const auto& [key, sizes] : sizes_of(group, info)) {
      const auto& [kind, type] = key;
      if (to_string(kind) != group) continue;  // others that a case needs
      SCOPED_TRACE(group + " " + type);
      types.insert(type);
      if (kind != OpKind::kGatherRows) {  // gathers one row or a few from a whole length
        for (const int64_t rows : expected_rows(info))
          EXPECT_TRUE(sizes.rows.contains(rows)) << rows;
      }
      EXPECT_TRUE(sizes.odd);
      if (kind == OpKind::kRope || kind == OpKind::kAttention) {
        for (const int64_t heads : {1, 3, 7}) EXPECT_TRUE(sizes.heads.contains(heads)) << heads;
      }
    }
    if (group == "mat_mul" || group == "embed") {
      for (const TensorType type : all_types()) {
        EXPECT_TRUE(types.contains(std::string(model::traits(type).name)))
            << group << " has no case of " << model::traits(type).name;
      }
    } else if (group == "attention" || group == "kv_write") {
      EXPECT_EQ(types, (std::set<std::string>{"KV F16", "KV F32"}));
    } else {
      EXPECT_EQ(types.size(), 1u) << group;
    }
  }
}

TEST_P(Coverage, WholeStagesAreOfEveryType) {
  std::set<std::string> types;
  std::set<int64_t> heads;
  for (const auto& [key, sizes] : sizes_of("stage", GetParam()())) {
    if (key.first == OpKind::kMatMul) types.insert(key.second);
    if (key.first == OpKind::kAttention) heads.insert(sizes.heads.begin(), sizes.heads.end());
  }
  for (const TensorType type : all_types()) {
    EXPECT_TRUE(types.contains(std::string(model::traits(type).name))) << model::traits(type).name;
  }
  for (const int64_t count : {1, 3, 7}) EXPECT_TRUE(heads.contains(count)) << count;
}

INSTANTIATE_TEST_SUITE_P(Facts, Coverage, ::testing::Values(any_rows, static_lengths, one_length));

}  // namespace
}  // namespace troika::device::conformance
