#include "troika/cost/described_cost.h"

namespace troika::cost {
namespace {

std::vector<int64_t> whole_numbers(const std::vector<double>& values) {
  std::vector<int64_t> numbers;
  for (const double value : values) numbers.push_back(static_cast<int64_t>(value));
  return numbers;
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

double DescribedCost::active_w(size_t device, bool memory_bound) const {
  const auto& power = soc_.units[device].power;
  if (!power) return 0;
  return memory_bound ? power->memory : power->compute;
}

Turbo DescribedCost::turbo() const {
  if (!soc_.turbo) return {};
  return {soc_.turbo->speed, 1e3 * soc_.turbo->budget};
}

double DescribedCost::launch_us(size_t device, bool drained) const {
  const soc::Unit& unit = soc_.units[device];
  return drained ? unit.launch_drained : unit.launch_queued;
}

}  // namespace troika::cost
