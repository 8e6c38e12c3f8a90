// The best way through a layer: one option for each of its steps, so that their times and what is
// paid between them are least in the sum, exactly. A layer follows a layer: the last step's option
// meets the first one's again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troika::planner {

// One way to compute a step.
struct LayerOption {
  double us = 0;
  uint32_t devices = 0;  // that have its outputs, a bit each
  // Each device goes on with its own slice: the next step can only be one that continues so.
  bool hands_on = false;
  bool continues = false;
};

// Between two options that follow each other; HUGE_VAL: they cannot.
using Crossing = std::function<double(const LayerOption& from, const LayerOption& to)>;

struct LayerPath {
  double us = 0;                // of the layer, all crossings included
  std::vector<size_t> options;  // by step
};

// By dynamic programming, once for each option of the first step. nullopt if there is no way.
std::optional<LayerPath> best_layer_path(const std::vector<std::vector<LayerOption>>& steps,
                                         const Crossing& crossing);

}  // namespace troika::planner
