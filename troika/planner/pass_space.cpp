#include "troika/planner/pass_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "troika/plan/shares.h"
#include "troika/sim/operator_cost.h"

namespace troika::planner {

using graph::OpId;
using graph::OpKind;
using graph::Stage;

PassSpace::PassSpace(const graph::Graph& graph, const cost::CostModel& cost,
                     const PassRequest& request, bool operand_order)
    : graph_(&graph),
      cost_(cost, request.integer_activations, !operand_order),
      request_(request),
      infos_(infos_for(cost, request)),
      operand_order_(operand_order) {
  find_sites();
  for (size_t device = 0; request.objective.needs_power() && device < infos_.size(); ++device) {
    if (!has_power(cost, device)) cost_.leave_out(device);
  }
  for (size_t device = 0; device < cost_.devices().size(); ++device) {
    other_us_.push_back(other_work_us(device));
  }
}

Result<PassSpace> PassSpace::create(const graph::Graph& graph, const cost::CostModel& cost,
                                    const PassRequest& request, bool operand_order) {
  PassSpace space(graph, cost, request, operand_order);
  const auto home = space.find_home();
  if (!home) {
    return make_error(ErrorCode::kUnsupported,
                      "no device computes attention and all that is no product");
  }
  space.home_ = *home;
  return space;
}

void PassSpace::find_sites() {
  std::map<std::pair<Stage, std::string_view>, size_t> known;
  std::map<std::pair<size_t, graph::TensorId>, size_t> group_of_input;
  std::vector<double> count;
  for (size_t i = 0; i < graph_->ops.size(); ++i) {
    const graph::Op& op = graph_->ops[i];
    if (op.kind != OpKind::kMatMul) continue;
    const auto id = static_cast<OpId>(i);
    const auto n = graph_->tensor(op.output).width;
    const auto k = graph_->tensor(op.inputs[0]).width;
    const std::string_view name = plan::product_name(*graph_, id);
    const double bits =
        sim::stored_bits(sim::asked_bits(lowered_options(request_, infos_), op.stage),
                         graph::weight_bytes(*graph_, id), n, k);
    const auto [found, is_new] = known.try_emplace({op.stage, name}, sites_.size());
    if (!is_new) {
      sites_[found->second].weight_bits += bits;
      ++count[found->second];
      continue;
    }
    const auto [group, first] =
        group_of_input.try_emplace({static_cast<size_t>(op.stage), op.inputs[0]}, groups_.size());
    if (first) groups_.push_back({{}, 0, k, 0});
    groups_[group->second].sites.push_back(sites_.size());
    groups_[group->second].n += n;
    sites_.push_back({op.stage, std::string(name), n, k, bits});
    count.push_back(1);
  }
  for (size_t i = 0; i < sites_.size(); ++i) sites_[i].weight_bits /= count[i];
  for (SiteGroup& group : groups_) {
    for (const size_t site : group.sites) {
      group.weight_bits += sites_[site].weight_bits * static_cast<double>(sites_[site].n) /
                           static_cast<double>(group.n);
    }
  }
}

// In about what the graph's operators move.
double PassSpace::other_work_us(size_t device) const {
  const auto rows = static_cast<double>(request_.rows);
  double us = 0;
  for (const graph::Op& op : graph_->ops) {
    const bool light = op.kind != OpKind::kMatMul && op.kind != OpKind::kAttention;
    if (op.layer != 0 || !light) continue;
    double width = static_cast<double>(graph_->tensor(op.output).width);
    for (const graph::TensorId input : op.inputs) {
      width += static_cast<double>(graph_->tensor(input).width);
    }
    us += cost_.elementwise(device, 4 * rows * width).work_us();
  }
  return us + attention_us(device, request_.rows);
}

double PassSpace::attention_us(size_t device, int64_t rows) const {
  const auto count = static_cast<double>(rows);
  double us = 0;
  for (const graph::Op& op : graph_->ops) {
    if (op.layer != 0 || op.kind != OpKind::kAttention) continue;
    const double keys = static_cast<double>(request_.depth) + (count + 1) / 2;
    const auto heads = static_cast<double>(op.heads.n_heads * op.heads.head_dim);
    const auto work = cost_.attention(device, 2 * heads * keys * count, 4 * heads * keys);
    us += work ? work->work_us() : HUGE_VAL;
  }
  return us;
}

bool PassSpace::can_host(size_t device) const {
  return !cost_.devices()[device].only_products && std::isfinite(other_us_[device]);
}

std::optional<size_t> PassSpace::find_home() const {
  std::optional<size_t> best;
  for (size_t device = 0; device < cost_.devices().size(); ++device) {
    if (!can_host(device)) continue;
    // Of equal ones that whose name comes first, however the devices are listed.
    const auto key = [&](size_t d) { return std::pair(other_us_[d], cost_.devices()[d].name); };
    if (!best || key(device) < key(*best)) best = device;
  }
  return best;
}

cost::Product PassSpace::product(const SiteGroup& group, int64_t rows) const {
  cost::Product product;
  product.m = is_head(group) ? std::min(request_.logit_rows, request_.rows) : rows;
  product.n = group.n;
  product.k = group.k;
  product.weight_bits = group.weight_bits;
  return product;
}

bool PassSpace::can(size_t device, const SiteGroup& group) const {
  cost::Product product = this->product(group, request_.rows);
  const int64_t padded = plan::padded_rows(product.m, infos_[device].standard_rows);
  // Longer passes go through it in pieces.
  if (padded > 0) product.m = padded;
  for (const std::string_view type : soc::types_near(product.weight_bits)) {
    product.type = type;
    if (cost_.product(device, product)) return true;
  }
  return false;
}

plan::Part PassSpace::part(size_t device, double share) const {
  // Static devices hold the input in place: the weight, which is larger, streams past it.
  const bool input_stationary = cost_.devices()[device].static_graphs && operand_order_;
  return {infos_[device].name, share, input_stationary};
}

size_t PassSpace::device(const std::string& name) const {
  const auto found = std::find_if(infos_.begin(), infos_.end(),
                                  [&](const auto& info) { return info.name == name; });
  return static_cast<size_t>(found - infos_.begin());
}

plan::RowsBucket PassSpace::bucket(size_t home, const std::vector<Choice>& choices) const {
  plan::RowsBucket bucket;
  bucket.max_rows = request_.rows;
  for (const Stage stage :
       {Stage::kInput, Stage::kHead, Stage::kG1, Stage::kAttention, Stage::kG2}) {
    const bool outer = stage == Stage::kInput || stage == Stage::kHead;
    if (!outer && graph_->n_layers == 0) continue;
    plan::Placement placement;
    placement.stage = stage;
    placement.first_layer = outer ? -1 : 0;
    placement.last_layer = outer ? -1 : static_cast<int32_t>(graph_->n_layers - 1);
    placement.parts = {part(home, 1)};
    bucket.placements.push_back(std::move(placement));
  }
  for (size_t g = 0; g < groups_.size(); ++g) set_choice(bucket, g, choices[g]);
  return bucket;
}

Choice PassSpace::choice(const plan::RowsBucket& bucket, size_t group, int32_t chunk) const {
  const Site& site = sites_[groups_[group].sites.front()];
  const plan::Placement* best = nullptr;
  int best_rank = -1;
  for (const plan::Placement& placement : bucket.placements) {
    const bool own = placement.stage == site.stage &&
                     (placement.op.empty() || placement.op == site.name) &&
                     (placement.chunk < 0 || placement.chunk == chunk);
    const int rank = plan::rank(placement);
    if (!own || rank <= best_rank) continue;
    best = &placement;
    best_rank = rank;
  }
  Choice choice;
  if (best == nullptr) return choice;
  choice.cut = best->cut;
  for (const plan::Part& one : best->parts) {
    choice.devices.push_back(device(one.device));
    choice.shares.push_back(one.share);
  }
  return choice;
}

void PassSpace::set_choice(plan::RowsBucket& bucket, size_t group, const Choice& choice,
                           int32_t chunk) const {
  for (const size_t index : groups_[group].sites) {
    const Site& site = sites_[index];
    std::erase_if(bucket.placements, [&](const plan::Placement& placement) {
      return placement.stage == site.stage && placement.op == site.name && placement.chunk == chunk;
    });
    const bool outer = site.stage == Stage::kHead;
    plan::Placement placement;
    placement.stage = site.stage;
    placement.op = site.name;
    placement.chunk = chunk;
    placement.first_layer = outer ? -1 : 0;
    placement.last_layer = outer ? -1 : static_cast<int32_t>(graph_->n_layers - 1);
    placement.cut = choice.cut;
    for (size_t i = 0; i < choice.devices.size(); ++i) {
      placement.parts.push_back(part(choice.devices[i], choice.shares[i]));
    }
    // What its stage does anyway needs no placement of its own.
    const auto stage = std::find_if(
        bucket.placements.begin(), bucket.placements.end(), [&](const plan::Placement& other) {
          return other.stage == site.stage && other.op.empty() && other.chunk < 0;
        });
    const bool same = chunk < 0 && stage != bucket.placements.end() &&
                      choice.cut == plan::Cut::kNone && stage->cut == plan::Cut::kNone &&
                      stage->parts.front().device == placement.parts.front().device;
    if (!same) bucket.placements.push_back(std::move(placement));
  }
}

std::vector<Choice> PassSpace::alone(size_t device, size_t home) const {
  std::vector<Choice> choices;
  for (const SiteGroup& group : groups_) {
    choices.push_back({plan::Cut::kNone, {can(device, group) ? device : home}, {1}});
  }
  return choices;
}

Choice choice_of(const Division& division, const cost::CostModel& cost) {
  Choice choice;
  switch (division.cut) {
    case OperatorCut::kNone:
    case OperatorCut::kPadding:
      choice.cut = plan::Cut::kNone;
      break;
    case OperatorCut::kWeightCentric:
      choice.cut = plan::Cut::kWeightCentric;
      break;
    case OperatorCut::kHybrid:
      choice.cut = plan::Cut::kHybrid;
      break;
    case OperatorCut::kActivationCentric:
      choice.cut = plan::Cut::kActivationCentric;
      break;
    case OperatorCut::kK:
      choice.cut = plan::Cut::kK;
      break;
  }
  std::vector<Slice> slices = division.slices;
  // The first rows for devices of fixed lengths: there their other operators' pieces begin, too.
  if (choice.cut == plan::Cut::kActivationCentric) {
    std::stable_partition(slices.begin(), slices.end(), [&](const Slice& slice) {
      return cost.devices()[slice.device].static_graphs;
    });
  }
  for (const Slice& slice : slices) {
    choice.devices.push_back(slice.device);
    choice.shares.push_back(slice.share);
  }
  return choice;
}

}  // namespace troika::planner
