#include "troika/planner/layer_path.h"

#include <cmath>

namespace troika::planner {
namespace {

// The best ways to all options of one step.
struct Column {
  std::vector<double> us;
  std::vector<size_t> before;  // the option of the step before
};

Column next_column(const Column& from, const std::vector<LayerOption>& before,
                   const std::vector<LayerOption>& options, const Crossing& crossing) {
  Column column{std::vector<double>(options.size(), HUGE_VAL),
                std::vector<size_t>(options.size(), 0)};
  for (size_t to = 0; to < options.size(); ++to) {
    for (size_t b = 0; b < before.size(); ++b) {
      if (!std::isfinite(from.us[b])) continue;
      const double us = from.us[b] + crossing(before[b], options[to]) + options[to].us;
      if (us >= column.us[to]) continue;
      column.us[to] = us;
      column.before[to] = b;
    }
  }
  return column;
}

}  // namespace

std::optional<LayerPath> best_layer_path(const std::vector<std::vector<LayerOption>>& steps,
                                         const Crossing& crossing) {
  std::optional<LayerPath> best;
  if (steps.empty()) return best;
  for (size_t first = 0; first < steps.front().size(); ++first) {
    std::vector<Column> columns(1);
    columns[0].us.assign(steps.front().size(), HUGE_VAL);
    columns[0].before.assign(steps.front().size(), 0);
    columns[0].us[first] = steps.front()[first].us;
    for (size_t s = 1; s < steps.size(); ++s) {
      columns.push_back(next_column(columns.back(), steps[s - 1], steps[s], crossing));
    }
    for (size_t last = 0; last < steps.back().size(); ++last) {
      const double us =
          columns.back().us[last] + crossing(steps.back()[last], steps.front()[first]);
      if (!std::isfinite(us) || (best && us >= best->us)) continue;
      best = LayerPath{us, std::vector<size_t>(steps.size(), last)};
      for (size_t s = steps.size() - 1; s > 0; --s) {
        best->options[s - 1] = columns[s].before[best->options[s]];
      }
    }
  }
  return best;
}

}  // namespace troika::planner
