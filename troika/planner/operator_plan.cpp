#include "troika/planner/operator_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "troika/cost/roofline.h"
#include "troika/planner/divider.h"

namespace troika::planner {
namespace {

Status check(const cost::Product& product) {
  const auto within = [](int64_t extent, int64_t most) { return extent >= 1 && extent <= most; };
  if (within(product.n, kMaxWeightExtent) && within(product.k, kMaxWeightExtent) &&
      within(product.m, kMaxTokens)) {
    return {};
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "a weight of {}x{} and {} tokens: extents are 1 to {}, tokens 1 to {}",
                    product.n, product.k, product.m, kMaxWeightExtent, kMaxTokens);
}

// In the order of their names: what the strategy allows and the product can run on.
Result<std::vector<size_t>> usable(const cost::CostModel& cost, const ProductTime& time,
                                   const Strategy& strategy) {
  std::vector<size_t> devices(cost.devices().size());
  std::iota(devices.begin(), devices.end(), size_t{0});
  std::sort(devices.begin(), devices.end(),
            [&](size_t a, size_t b) { return time.facts(a).name < time.facts(b).name; });
  std::string names;
  for (const size_t device : devices) {
    names += (names.empty() ? "" : ", ") + time.facts(device).name;
  }
  std::erase_if(devices, [&](size_t device) {
    const cost::DeviceFacts& facts = time.facts(device);
    return !strategy.device.empty() && strategy.device != facts.name &&
           strategy.device != facts.kind;
  });
  if (devices.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "strategy {}: no device is called '{}'; devices: {}", strategy.name,
                      strategy.device.substr(0, 60), names);
  }
  std::erase_if(devices, [&](size_t device) {
    return (strategy.static_only && !time.facts(device).static_graphs) || !time.whole(device);
  });
  if (devices.empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "strategy {}: no device can have this product of {} tokens and type {}",
                      strategy.name, time.product().m, time.product().type);
  }
  return devices;
}

struct Candidates {
  std::vector<Division> alone;
  std::vector<Division> cuts;
};

Candidates candidates(const Divider& divider, const std::vector<size_t>& devices,
                      const Strategy& strategy, int64_t rows, int64_t grid) {
  Candidates all;
  for (const size_t device : devices) all.alone.push_back(divider.alone(device));
  const auto add = [&](std::optional<Division> division) {
    if (division) all.cuts.push_back(std::move(*division));
  };
  if (strategy.cuts_outputs(rows)) add(divider.by_outputs(grid));
  if (strategy.cut_rows) add(divider.by_rows(grid, strategy.row_quantum));
  if (strategy.cut_inputs) add(divider.by_inputs(grid, strategy.input_quantum));
  return all;
}

const Division* fastest(const std::vector<Division>& divisions) {
  const auto best =
      std::min_element(divisions.begin(), divisions.end(),
                       [](const Division& a, const Division& b) { return a.us() < b.us(); });
  return best == divisions.end() ? nullptr : &*best;
}

const Division& choose(const Candidates& all, const Strategy& strategy) {
  const Division& alone = *fastest(all.alone);
  const Division* cut = fastest(all.cuts);
  if (cut == nullptr) return alone;
  const bool pays = cut->us() < alone.us() * (1 - strategy.least_gain);
  return pays || !strategy.guard ? *cut : alone;
}

std::string names_of(const Division& division, const ProductTime& time) {
  std::string names;
  for (const Slice& slice : division.slices) {
    names += (names.empty() ? "" : " and ") + time.facts(slice.device).name;
  }
  return names;
}

std::string reason(const Candidates& all, const Division& chosen, const Strategy& strategy,
                   const ProductTime& time) {
  const Division& alone = *fastest(all.alone);
  const Division* cut = fastest(all.cuts);
  const std::string single =
      fmt::format("{} alone takes {:.0f} us", names_of(alone, time), alone.us());
  if (cut == nullptr) return single + "; the strategy cuts nothing, or nothing can be cut";
  const double gain = 100 * (1 - cut->us() / alone.us());
  std::string text =
      fmt::format("{}, {} on {} {:.0f} us: {:.1f} % {}", single, to_string(cut->cut),
                  names_of(*cut, time), cut->us(), std::abs(gain), gain > 0 ? "less" : "more");
  if (chosen.slices.size() > 1) return text + (gain > 0 ? "" : ", and taken because it was forced");
  if (gain > 0) {
    text += fmt::format(", below the {:.0f} % that a cut must gain", 100 * strategy.least_gain);
  }
  return text;
}

double roofline_us(const cost::CostModel& cost, const ProductTime& time,
                   const std::vector<size_t>& devices) {
  std::vector<cost::Roof> roofs;
  uint32_t mask = 0;
  const double operations = time.product().operations();
  for (const size_t device : devices) {
    const auto estimate = cost.product(device, time.product());
    roofs.push_back({operations / estimate->compute_us * 1e-3, time.facts(device).bandwidth_gbps,
                     operations / estimate->bytes});
    mask |= 1u << device;
  }
  return operations / cost::co_execution_bound(roofs, cost.shared_gbps(mask)).gflops * 1e-3;
}

}  // namespace

std::string_view to_string(OperatorCut cut) {
  switch (cut) {
    case OperatorCut::kNone:
      return "none";
    case OperatorCut::kPadding:
      return "padding";
    case OperatorCut::kWeightCentric:
      return "weight-centric";
    case OperatorCut::kHybrid:
      return "hybrid";
    case OperatorCut::kActivationCentric:
      return "activation-centric";
    case OperatorCut::kK:
      return "k-cut";
  }
  return "";
}

Result<OperatorPlan> plan_operator(const cost::CostModel& cost, const cost::Product& product,
                                   const Strategy& strategy) {
  RETURN_IF_ERROR(check(product));
  const ProductTime time(cost, product, strategy.rows);
  ASSIGN_OR_RETURN(const std::vector<size_t> devices, usable(cost, time, strategy));
  const Divider divider(time, devices);
  const int64_t grid = strategy.grid_for(product.m);
  const Candidates all = candidates(divider, devices, strategy, product.m, grid);
  const Division& chosen = choose(all, strategy);

  OperatorPlan plan;
  plan.chosen = chosen;
  plan.reason = reason(all, chosen, strategy, time);
  plan.roofline_us = roofline_us(cost, time, devices);
  if (grid > 0)
    plan.continuous = choose(candidates(divider, devices, strategy, product.m, 0), strategy);
  for (const std::vector<Division>* group : {&all.alone, &all.cuts}) {
    for (const Division& division : *group) {
      if (&division != &chosen) plan.alternatives.push_back(division);
    }
  }
  std::stable_sort(plan.alternatives.begin(), plan.alternatives.end(),
                   [](const Division& a, const Division& b) { return a.us() < b.us(); });
  return plan;
}

}  // namespace troika::planner
