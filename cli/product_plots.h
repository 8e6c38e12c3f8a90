// What products take on the units of a described chip, as HeteroInfer (SOSP '25) plots it: the
// staircase of a unit with fixed tiles, the order of operands, and the effect of a slice's shape.
#pragma once

#include <string>

#include "troika/cost/described_cost.h"

namespace troika::cli {

// Figures for an HTML page that has line_plot_style(); empty for a chip without static graphs.
// Everything is simulated from the description.
std::string product_plots_html(const cost::DescribedCost& chip);

}  // namespace troika::cli
