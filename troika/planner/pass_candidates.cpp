#include "troika/planner/pass_candidates.h"

#include <algorithm>
#include <cmath>

#include "troika/planner/even_loads.h"
#include "troika/planner/group_division.h"
#include "troika/planner/layer_candidate.h"
#include "troika/planner/product_time.h"

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

Result<std::vector<Choice>> divide_all(const PassSpace& space, const Strategy& strategy,
                                       int64_t rows) {
  std::vector<Choice> choices;
  for (const SiteGroup& group : space.groups()) {
    ASSIGN_OR_RETURN(const Division division, divide(space, group, strategy, rows));
    choices.push_back(choice_of(division, space.cost()));
  }
  return choices;
}

// Each group as the operator solver divides it.
Result<Candidate> by_operators(const PassSpace& space, const Strategy& strategy, int64_t rows) {
  ASSIGN_OR_RETURN(const std::vector<Choice> choices, divide_all(space, strategy, rows));
  return Candidate{strategy.name, space.bucket(space.home(), choices), false};
}

// As the solver divides, but gate, up and down in a pair: along the outputs, then each device's own
// slice along the inputs.
Result<Candidate> paired(const PassSpace& space, const Strategy& strategy, int64_t rows) {
  ASSIGN_OR_RETURN(std::vector<Choice> choices, divide_all(space, strategy, rows));
  Strategy outputs = strategy;
  outputs.cut_rows = outputs.cut_inputs = outputs.guard = false;
  outputs.cut_outputs = true;
  bool any = false;
  for (size_t g = 0; g < choices.size(); ++g) {
    const auto before = group_before(space, g);
    if (!before) continue;
    ASSIGN_OR_RETURN(const Division division,
                     divide(space, space.groups()[*before], outputs, rows));
    if (division.slices.size() < 2) continue;
    choices[g] = choices[*before] = choice_of(division, space.cost());
    choices[g].cut = choices[*before].cut = plan::Cut::kPaired;
    any = true;
  }
  if (!any) return make_error(ErrorCode::kUnsupported, "nothing can be cut in pairs");
  return Candidate{"paired", space.bucket(space.home(), choices), false};
}

// Whole stages divided among the devices that can have all of them, by their speed in the products.
Result<Candidate> whole_stages(const PassSpace& space, const Strategy& strategy, plan::Cut cut,
                               int64_t rows) {
  std::vector<plan::Part> parts;
  for (size_t device = 0; device < space.infos().size(); ++device) {
    if (!space.can_host(device)) continue;
    double us = 0;
    for (const SiteGroup& group : space.groups()) {
      const ProductTime time(space.cost(), space.product(group, rows), within_pass(strategy).rows);
      const auto whole = time.whole(device);
      us += whole ? whole->us : HUGE_VAL;
    }
    if (std::isfinite(us) && us > 0) parts.push_back(space.part(device, 1e6 / us));
  }
  if (parts.size() < 2) return make_error(ErrorCode::kUnsupported, "no two devices can have all");
  double sum = 0;
  for (const plan::Part& part : parts) sum += part.share;
  for (plan::Part& part : parts) part.share /= sum;
  std::erase_if(parts, [](const plan::Part& part) { return part.share < 0.01; });
  if (parts.size() < 2) return make_error(ErrorCode::kUnsupported, "one device does it all");
  ASSIGN_OR_RETURN(const std::vector<Choice> choices, divide_all(space, strategy, rows));
  plan::RowsBucket bucket = space.bucket(space.home(), space.alone(space.home(), space.home()));
  for (plan::Placement& placement : bucket.placements) {
    const bool outer = placement.stage == graph::Stage::kInput ||
                       placement.stage == graph::Stage::kHead || !placement.op.empty();
    if (outer) continue;
    placement.cut = cut;
    placement.parts = parts;
  }
  for (size_t g = 0; g < choices.size(); ++g) {
    if (space.is_head(space.groups()[g])) space.set_choice(bucket, g, choices[g]);
  }
  return Candidate{cut == plan::Cut::kPaired ? "paired by heads" : "rows", std::move(bucket),
                   false};
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

// What the strategy's own cuts make of a pass, and what else it may start from.
Result<std::vector<Candidate>> cut_candidates(const PassSpace& space, const Strategy& strategy,
                                              int64_t rows) {
  std::vector<Candidate> candidates;
  ASSIGN_OR_RETURN(Candidate own, by_operators(space, strategy, rows));
  candidates.push_back(std::move(own));
  const auto add = [&](Result<Candidate> candidate) {
    if (candidate) candidates.push_back(std::move(*candidate));
  };
  if (strategy.paired) add(paired(space, strategy, rows));
  if (!strategy.tune) return candidates;
  Strategy layer = strategy;
  layer.name = "layer";
  layer.cut_outputs = layer.cut_one_row = layer.cut_rows = layer.cut_inputs = false;
  add(by_operators(space, layer, rows));
  if (!strategy.all_edits) return candidates;
  add(layer_path_candidate(space, strategy, rows));
  Strategy outputs = strategy;
  outputs.name = "weight-centric";
  outputs.cut_rows = outputs.cut_inputs = false;
  add(by_operators(space, outputs, rows));
  if (strategy.paired) add(whole_stages(space, strategy, plan::Cut::kPaired, rows));
  if (rows > 1) add(whole_stages(space, strategy, plan::Cut::kActivationCentric, rows));
  for (Candidate& candidate : even_candidates(space, strategy, rows)) {
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace

std::vector<Candidate> single_candidates(const PassSpace& space) {
  std::vector<Candidate> candidates;
  for (size_t device = 0; device < space.cost().devices().size(); ++device) {
    if (can_any(space, device)) candidates.push_back(alone(space, device));
  }
  return candidates;
}

Result<std::vector<Candidate>> strategy_candidates(const PassSpace& space, const Strategy& strategy,
                                                   int64_t chunk_rows) {
  if (!strategy.device.empty()) return single_strategy(space, strategy);
  if (strategy.static_only) return static_strategy(space, strategy);
  return cut_candidates(space, strategy, chunk_rows);
}

}  // namespace troika::planner
