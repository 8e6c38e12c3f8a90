#include "troika/device/conformance/catalogue.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "troika/device/conformance/case_list.h"

namespace troika::device::conformance {
namespace {

constexpr graph::OpKind kKinds[] = {
    graph::OpKind::kEmbed,     graph::OpKind::kRopeTable, graph::OpKind::kRmsNorm,
    graph::OpKind::kMatMul,    graph::OpKind::kRope,      graph::OpKind::kKvWrite,
    graph::OpKind::kAttention, graph::OpKind::kSiluMul,   graph::OpKind::kAdd,
    graph::OpKind::kConcat,    graph::OpKind::kGatherRows};

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

CaseList::CaseList(std::string group, const DeviceInfo& info)
    : group_(std::move(group)), info_(info) {
  const std::vector<int64_t>& standard = info.standard_rows;
  length_ = kKvBlockTokens;
  bool longer = true;
  if (!standard.empty()) {
    auto at = std::lower_bound(standard.begin(), standard.end(), kKvBlockTokens);
    if (at == standard.end()) --at;
    length_ = *at;
    longer = at + 1 != standard.end();
  }
  for (const int64_t rows :
       {int64_t{1}, int64_t{3}, length_ - 1, length_, longer ? length_ + 1 : length_}) {
    if (rows > (row_counts_.empty() ? 0 : row_counts_.back()) && rows <= length_ + 1 &&
        (longer || rows <= length_)) {
      row_counts_.push_back(rows);
    }
  }
}

void CaseList::add(std::string name, BatchPlan batch, std::function<void(ProblemBuilder&)> body,
                   int round) {
  batch.contiguous_blocks = !info_.paged_attention;
  const std::string seed = group_ + " " + name;
  cases_.push_back({group_, std::move(name),
                    [seed, batch, body = std::move(body)] {
                      ProblemBuilder builder(seed);
                      body(builder);
                      return builder.finish(batch);
                    },
                    round});
}

int64_t CaseList::n_cut(int64_t value) const { return round_up(value, info_.n_tile); }

int64_t CaseList::k_cut(int64_t value, model::TensorType type) const {
  constexpr int64_t kLeast = 32;  // plain weights are cut as finely as small blocks
  const int64_t block = std::lcm(kLeast, int64_t{model::traits(type).block_weights});
  return round_up(value, std::lcm(info_.k_tile, block));
}

std::string type_name(model::TensorType type) { return std::string(model::traits(type).name); }

int64_t whole_blocks(int64_t cols, model::TensorType type) {
  return round_up(cols, model::traits(type).block_weights);
}

BatchPlan prompt(int64_t rows, int64_t history) {
  BatchPlan batch;
  batch.sequences = {{history, {rows}}};
  return batch;
}

BatchPlan ragged(int64_t rows) {
  BatchPlan batch;
  const int64_t first = (rows + 1) / 2;
  const int64_t second = (rows - first + 1) / 2;
  const int64_t third = rows - first - second;
  batch.sequences.push_back({.history = 0, .chunks = {first}});
  // Begins in the last slot of a block.
  if (second > 0) batch.sequences.push_back({.history = kKvBlockTokens - 1, .chunks = {second}});
  if (third > 0) batch.sequences.push_back({.history = 2 * kKvBlockTokens + 5, .chunks = {third}});
  return batch;
}

graph::HeadShape head_shape(int64_t n_heads, int64_t group, int64_t head_dim, int64_t first_head) {
  graph::HeadShape heads;
  heads.n_heads = n_heads;
  heads.first_head = first_head;
  heads.group = group;
  heads.head_dim = head_dim;
  heads.rope_dim = head_dim;
  heads.scale = 1 / std::sqrt(static_cast<float>(head_dim));
  return heads;
}

std::vector<std::string> groups() {
  std::vector<std::string> names;
  for (const graph::OpKind kind : kKinds) names.emplace_back(to_string(kind));
  names.emplace_back("stage");
  return names;
}

std::vector<Case> cases_of(const std::string& group, const DeviceInfo& info) {
  CaseList list(group, info);
  if (group == "stage") add_stage_cases(list);
  for (const graph::OpKind kind : kKinds) {
    if (to_string(kind) != group) continue;
    switch (kind) {
      case graph::OpKind::kMatMul:
        add_mat_mul_cases(list);
        break;
      case graph::OpKind::kRope:
        add_rope_cases(list);
        break;
      case graph::OpKind::kKvWrite:
        add_kv_write_cases(list);
        break;
      case graph::OpKind::kAttention:
        add_attention_cases(list);
        break;
      default:
        add_row_cases(list, kind);
    }
  }
  return list.take();
}

}  // namespace troika::device::conformance
