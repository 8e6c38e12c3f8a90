#include "cli/product_plots.h"

#include <cmath>
#include <optional>

#include "cli/line_plot.h"
#include "cli/page_text.h"

namespace troika::cli {
namespace {

constexpr double kTflops = 1e-6;  // of operations in a microsecond

// By itself, with the operand in place that is asked for, us.
double product_us(const cost::DescribedCost& chip, size_t unit, int64_t m, int64_t n, int64_t k,
                  bool weight_stationary = false) {
  cost::Product product{m, n, k};
  product.weight_stationary = weight_stationary;
  const auto work = chip.product(unit, product);
  return work ? work->fixed_us + work->work_us() : NAN;
}

std::string figure(const LinePlot& plot, const std::string& caption) {
  return "<figure><h3>" + html_escaped(plot.title) + "</h3>" + line_plot_svg(plot) +
         "<figcaption>" + html_escaped(caption) + "</figcaption></figure>\n";
}

std::string staircase(const cost::DescribedCost& chip, size_t unit) {
  LinePlot plot{"A staircase of tiles", "tokens", "ms, 4096 x 4096", {}, false};
  for (size_t other = 0; other < chip.devices().size(); ++other) {
    PlotLine line{chip.devices()[other].name, {}};
    for (int64_t m = 2; m <= 288; m += 2) {
      const double us = product_us(chip, other, m, 4096, 4096);
      // A step is vertical.
      if (other == unit && !line.points.empty() && us > line.points.back().second * 1e3) {
        line.points.emplace_back(static_cast<double>(m), line.points.back().second);
      }
      if (std::isfinite(us)) line.points.emplace_back(static_cast<double>(m), us / 1e3);
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  return figure(plot,
                "A unit with a fixed tile pads tokens to multiples of it; one with a linear "
                "law first is bound by reading and unpacking the weight.");
}

std::string operand_order(const cost::DescribedCost& chip, size_t unit) {
  LinePlot plot{"Which operand stays in place", "tokens", "ms, 14336 x 4096", {}, false};
  for (const bool weight : {true, false}) {
    PlotLine line{weight ? "weight in place" : "input in place", {}};
    for (int64_t m = 32; m <= 512; m += 32) {
      line.points.emplace_back(static_cast<double>(m),
                               product_us(chip, unit, m, 14336, 4096, weight) / 1e3);
    }
    plot.lines.push_back(std::move(line));
  }
  const double gain = product_us(chip, unit, 256, 14336, 4096, true) /
                      product_us(chip, unit, 256, 14336, 4096, false);
  return figure(plot, fmt::format("At 256 tokens the order in which the smaller operand stays is "
                                  "{:.1f} times as fast.",
                                  gain));
}

std::string shape_effect(const cost::DescribedCost& chip, size_t unit) {
  LinePlot plot{
      "The shape of a slice", "inputs, of 16.8 M weights", "TFLOPS, 256 tokens", {}, true};
  constexpr int64_t kWeights = int64_t{4096} * 4096;
  for (size_t other = 0; other < chip.devices().size(); ++other) {
    PlotLine line{chip.devices()[other].name, {}};
    for (int64_t k = 512; k <= 32768; k *= 2) {
      const int64_t n = kWeights / k;
      const double us = product_us(chip, other, 256, n, k);
      const double operations = 2.0 * 256 * static_cast<double>(n) * static_cast<double>(k);
      if (std::isfinite(us))
        line.points.emplace_back(static_cast<double>(k), operations / us * kTflops);
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  const double ratio =
      product_us(chip, unit, 256, 4096, 14336) / product_us(chip, unit, 256, 14336, 4096);
  return figure(plot, fmt::format("As many weights take longer where a slice has more inputs: on "
                                  "the {} 4096 x 14336 takes {:.1f} times as long as 14336 x 4096.",
                                  chip.devices()[unit].name, ratio));
}

}  // namespace

std::string product_plots_html(const cost::DescribedCost& chip) {
  std::optional<size_t> unit;
  for (size_t i = 0; i < chip.devices().size(); ++i) {
    if (chip.devices()[i].static_graphs) unit = i;
  }
  if (!unit) return {};
  return "<h2>Products on " + html_escaped(chip.soc().name) +
         "</h2>\n<p>Simulated from the description, as HeteroInfer (SOSP '25) plots what it "
         "measured.</p>\n<div class=\"plots\">\n" +
         staircase(chip, *unit) + operand_order(chip, *unit) + shape_effect(chip, *unit) +
         "</div>\n";
}

}  // namespace troika::cli
