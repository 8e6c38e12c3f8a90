#include "troika/planner/layer_candidate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "troika/planner/group_division.h"
#include "troika/planner/layer_path.h"
#include "troika/planner/product_time.h"

namespace troika::planner {
namespace {

constexpr size_t kAttention = SIZE_MAX;

// A step of a layer, its options, and what each of them does.
struct Step {
  size_t group = kAttention;
  std::vector<LayerOption> options;
  std::vector<Choice> choices;
};

uint32_t mask_of(const std::vector<size_t>& devices) {
  uint32_t mask = 0;
  for (const size_t device : devices) mask |= 1u << device;
  return mask;
}

class LayerWays {
 public:
  LayerWays(const PassSpace& space, const Strategy& strategy, int64_t rows)
      : space_(space), strategy_(strategy), rows_(rows) {}

  Result<Candidate> run() {
    RETURN_IF_ERROR(find_steps());
    std::vector<std::vector<LayerOption>> options;
    for (const Step& step : steps_) options.push_back(step.options);
    const auto path = best_layer_path(
        options, [this](const LayerOption& a, const LayerOption& b) { return crossing_us(a, b); });
    if (!path) return make_error(ErrorCode::kUnsupported, "there is no way through a layer");
    std::vector<Choice> choices = heads_;
    const Choice* attention = nullptr;
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Choice& own = steps_[s].choices[path->options[s]];
      if (steps_[s].group == kAttention) {
        attention = &own;
      } else {
        choices[steps_[s].group] = own;
      }
    }
    plan::RowsBucket bucket = space_.bucket(space_.home(), choices);
    for (plan::Placement& placement : bucket.placements) {
      if (placement.stage != graph::Stage::kAttention || attention == nullptr) continue;
      placement.parts = {space_.part(attention->devices.front(), 1)};
    }
    return Candidate{"layer path", std::move(bucket), false};
  }

 private:
  Status find_steps() {
    heads_.resize(space_.groups().size());
    for (size_t g = 0; g < space_.groups().size(); ++g) {
      const SiteGroup& group = space_.groups()[g];
      ASSIGN_OR_RETURN(const OperatorPlan plan, plan_group(space_, group, strategy_, rows_));
      if (space_.is_head(group)) {
        heads_[g] = choice_of(plan.chosen, space_.cost());
        continue;
      }
      const bool after_attention =
          space_.sites()[group.sites.front()].stage == graph::Stage::kG2 && !has_attention_;
      if (after_attention) add_attention();
      Step step;
      step.group = g;
      add(step, plan.chosen);
      for (const Division& other : plan.alternatives) add(step, other);
      steps_.push_back(std::move(step));
    }
    if (strategy_.paired) return add_pairs();
    return {};
  }

  void add(Step& step, const Division& division) const {
    LayerOption option;
    option.us = division.slowest_us;
    step.choices.push_back(choice_of(division, space_.cost()));
    option.devices = mask_of(step.choices.back().devices);
    step.options.push_back(option);
  }

  void add_attention() {
    has_attention_ = true;
    Step step;
    for (size_t device = 0; device < space_.infos().size(); ++device) {
      if (!space_.can_host(device)) continue;
      step.options.push_back({space_.attention_us(device, rows_), 1u << device, false, false});
      step.choices.push_back({plan::Cut::kNone, {device}, {1}});
    }
    steps_.push_back(std::move(step));
  }

  // Outputs of one group, then each device's own slice of the next one's inputs.
  Status add_pairs() {
    Strategy outputs = strategy_;
    outputs.cut_rows = outputs.cut_inputs = outputs.guard = false;
    outputs.cut_outputs = true;
    for (size_t s = 1; s < steps_.size(); ++s) {
      if (steps_[s].group == kAttention || steps_[s - 1].group == kAttention) continue;
      const auto before = group_before(space_, steps_[s].group);
      if (!before || *before != steps_[s - 1].group) continue;
      ASSIGN_OR_RETURN(const Division division,
                       divide(space_, space_.groups()[*before], outputs, rows_));
      if (division.slices.size() < 2) continue;
      Choice choice = choice_of(division, space_.cost());
      choice.cut = plan::Cut::kPaired;
      const double us = paired_us(space_.groups()[steps_[s].group], choice);
      if (!std::isfinite(us)) continue;
      const uint32_t devices = mask_of(choice.devices);
      steps_[s - 1].options.push_back({division.slowest_us, devices, true, false});
      steps_[s - 1].choices.push_back(choice);
      steps_[s].options.push_back({us, devices, false, true});
      steps_[s].choices.push_back(std::move(choice));
    }
    return {};
  }

  // Of slices of the inputs in the shares of a choice; HUGE_VAL if a device cannot have its own.
  double paired_us(const SiteGroup& group, const Choice& choice) const {
    cost::Product product = space_.product(group, rows_);
    for (const std::string_view type : soc::types_near(product.weight_bits)) {
      product.type = type;
      const ProductTime time(space_.cost(), product, within_pass(strategy_).rows);
      const double speed = time.speed_together(choice.devices);
      double us = time.sum_us(choice.devices.size());
      bool all = true;
      double slowest = 0;
      for (size_t i = 0; i < choice.devices.size(); ++i) {
        const auto inputs = static_cast<int64_t>(choice.shares[i] * static_cast<double>(product.k));
        const auto slice = time.slice(choice.devices[i], product.m, product.n,
                                      std::max<int64_t>(1, inputs), speed);
        all = all && slice.has_value();
        if (slice) slowest = std::max(slowest, slice->us);
      }
      if (all) return us + slowest;
    }
    return HUGE_VAL;
  }

  // What is no product lies between two steps, on the home if a device computes nothing else.
  double crossing_us(const LayerOption& from, const LayerOption& to) const {
    if (from.hands_on || to.continues) {
      return from.hands_on && to.continues && from.devices == to.devices ? 0 : HUGE_VAL;
    }
    const uint32_t all = from.devices | to.devices;
    const uint32_t home = 1u << space_.home();
    bool through_home = false;
    for (size_t device = 0; device < space_.infos().size(); ++device) {
      through_home = through_home || ((all >> device & 1) != 0 && !space_.can_host(device));
    }
    int joins = std::popcount(all) > 1 ? 1 : 0;
    if (through_home) joins = (from.devices != home ? 1 : 0) + (to.devices != home ? 1 : 0);
    return joins * space_.cost().join_us();
  }

  const PassSpace& space_;
  const Strategy& strategy_;
  int64_t rows_;
  bool has_attention_ = false;
  std::vector<Step> steps_;
  std::vector<Choice> heads_;  // by group
};

}  // namespace

Result<Candidate> layer_path_candidate(const PassSpace& space, const Strategy& strategy,
                                       int64_t rows) {
  return LayerWays(space, strategy, rows).run();
}

}  // namespace troika::planner
