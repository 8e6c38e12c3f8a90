#include "troika/cost/described_cost.h"

namespace troika::cost {
namespace {

std::vector<int64_t> whole_numbers(const std::vector<double>& values) {
  std::vector<int64_t> numbers;
  for (const double value : values) numbers.push_back(static_cast<int64_t>(value));
  return numbers;
}

double value_or(const std::optional<soc::Figure>& figure, double other) {
  return figure ? figure->value : other;
}

DeviceFacts facts_of(const soc::Unit& unit) {
  DeviceFacts facts;
  facts.name = unit.name;
  facts.kind = soc::to_string(unit.kind);
  facts.only_products = unit.only_products;
  facts.bandwidth_gbps = unit.bandwidth;
  const soc::Tiles tiles = soc::tiles_of(unit);
  facts.row_tile = tiles.rows;
  facts.n_tile = tiles.outputs;
  facts.k_tile = tiles.inputs;
  if (unit.static_graphs) {
    facts.static_graphs = true;
    facts.standard_lengths = whole_numbers(unit.static_graphs->standard_lengths.values);
  }
  return facts;
}

}  // namespace

DescribedCost::DescribedCost(soc::Soc soc) : soc_(std::move(soc)), shared_(soc_) {
  for (const soc::Unit& unit : soc_.units) facts_.push_back(facts_of(unit));
}

RunFacts DescribedCost::run_facts(size_t device) const {
  const soc::Unit& unit = soc_.units[device];
  RunFacts facts;
  facts.speed_among_others = value_or(unit.speed_among_others, 1);
  if (soc_.turbo) {
    facts.turbo_speed = value_or(unit.turbo_speed, soc_.turbo->speed);
    facts.turbo_power = value_or(soc_.turbo->power, facts.turbo_speed);
  }
  facts.drained_stall = value_or(unit.drained_stall, 0);
  facts.queue_depth = static_cast<int64_t>(value_or(unit.queue_depth, 0));
  facts.datapath_switch_us = value_or(unit.datapath_switch, 0);
  facts.weights_switch_us = value_or(unit.weights_switch, 0);
  if (unit.power) {
    facts.compute_w = unit.power->compute;
    facts.memory_w = unit.power->memory;
    facts.waiting_w = value_or(unit.power->waiting, 0);
  }
  return facts;
}

ChipFacts DescribedCost::chip_facts() const {
  return {soc_.idle_power, soc_.turbo ? 1e3 * soc_.turbo->budget : 0,
          value_or(soc_.pass_overhead, 0)};
}

double DescribedCost::launch_us(size_t device, bool drained) const {
  const soc::Unit& unit = soc_.units[device];
  return drained ? unit.launch_drained : unit.launch_queued;
}

}  // namespace troika::cost
