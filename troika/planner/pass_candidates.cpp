#include "troika/planner/pass_candidates.h"

#include <algorithm>

namespace troika::planner {
namespace {

bool is_called(const cost::DeviceFacts& facts, const std::string& device) {
  return facts.name == device || facts.kind == device;
}

bool can_any(const PassSpace& space, size_t device) {
  return std::any_of(space.groups().begin(), space.groups().end(),
                     [&](const SiteGroup& group) { return space.can(device, group); });
}

size_t home_of(const PassSpace& space, size_t device) {
  return space.can_host(device) ? device : space.home();
}

Candidate alone(const PassSpace& space, size_t device) {
  const size_t home = home_of(space, device);
  return {space.cost().devices()[device].name + " alone",
          space.bucket(home, space.alone(device, home)), true};
}

// Rows as the devices of a pass take them.
Strategy within_pass(Strategy strategy) {
  if (strategy.rows == Rows::kTile) strategy.rows = Rows::kPieces;
  return strategy;
}

Result<Division> divide(const PassSpace& space, const SiteGroup& group, const Strategy& strategy) {
  cost::Product product = space.product(group);
  Strategy own = within_pass(strategy);
  // Wanted rows cannot be divided among devices.
  if (space.sites()[group.sites.front()].stage == graph::Stage::kHead) own.cut_rows = false;
  std::string last;
  for (const std::string_view type : soc::types_near(product.weight_bits)) {
    product.type = type;
    auto plan = plan_operator(space.cost(), product, own);
    if (plan) return plan->chosen;
    if (plan.error().code != ErrorCode::kUnsupported) {
      return tl::unexpected<Error>(std::move(plan).error());
    }
    last = plan.error().message;
  }
  return make_error(ErrorCode::kUnsupported, "{}", last);
}

// Each group as the operator solver divides it.
Result<Candidate> by_operators(const PassSpace& space, const Strategy& strategy) {
  std::vector<Choice> choices;
  for (const SiteGroup& group : space.groups()) {
    ASSIGN_OR_RETURN(const Division division, divide(space, group, strategy));
    choices.push_back(choice_of(division, space.cost()));
  }
  return Candidate{strategy.name, space.bucket(space.home(), choices), false};
}

Result<std::vector<Candidate>> single_strategy(const PassSpace& space, const Strategy& strategy) {
  std::vector<Candidate> candidates;
  std::string names;
  bool known = false;
  for (size_t device = 0; device < space.cost().devices().size(); ++device) {
    const cost::DeviceFacts& facts = space.cost().devices()[device];
    names += (names.empty() ? "" : ", ") + facts.name;
    if (!is_called(facts, strategy.device)) continue;
    known = true;
    if (can_any(space, device)) candidates.push_back(alone(space, device));
  }
  if (!candidates.empty()) return candidates;
  if (!known) {
    return make_error(ErrorCode::kInvalidArgument,
                      "strategy {}: no device is called '{}'; devices: {}", strategy.name,
                      strategy.device.substr(0, 60), names);
  }
  return make_error(ErrorCode::kUnsupported, "strategy {}: the device has no path for {} rows{}",
                    strategy.name, space.request().rows,
                    space.request().integer_activations ? "" : " without rounding activations");
}

// The static devices, products on them whole.
Result<std::vector<Candidate>> static_strategy(const PassSpace& space, const Strategy& strategy) {
  std::vector<Candidate> candidates;
  for (size_t device = 0; device < space.cost().devices().size(); ++device) {
    if (!space.cost().devices()[device].static_graphs || !can_any(space, device)) continue;
    Candidate candidate = alone(space, device);
    candidate.name = strategy.name;
    for (plan::Placement& placement : candidate.bucket.placements) {
      const bool pads = strategy.rows == Rows::kStandard && !placement.op.empty();
      if (pads) placement.cut = plan::Cut::kHybrid;
    }
    candidates.push_back(std::move(candidate));
  }
  if (!candidates.empty()) return candidates;
  return make_error(ErrorCode::kUnsupported,
                    "strategy {}: no device with static graphs has a path for {} rows",
                    strategy.name, space.request().rows);
}

}  // namespace

std::vector<Candidate> single_candidates(const PassSpace& space) {
  std::vector<Candidate> candidates;
  for (size_t device = 0; device < space.cost().devices().size(); ++device) {
    if (can_any(space, device)) candidates.push_back(alone(space, device));
  }
  return candidates;
}

Result<std::vector<Candidate>> strategy_candidates(const PassSpace& space,
                                                   const Strategy& strategy) {
  if (!strategy.device.empty()) return single_strategy(space, strategy);
  if (strategy.static_only) return static_strategy(space, strategy);
  std::vector<Candidate> candidates;
  ASSIGN_OR_RETURN(Candidate own, by_operators(space, strategy));
  candidates.push_back(std::move(own));
  return candidates;
}

}  // namespace troika::planner
