#include "cli/profile_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/page_text.h"
#include "web/profile.h"

namespace troika::cli {
namespace {

using profile::DeviceProfile;
using profile::Order;
using profile::ProductPoint;

double gflops(const ProductPoint& point) {
  const double operations = 2.0 * static_cast<double>(point.rows) * static_cast<double>(point.n) *
                            static_cast<double>(point.k);
  return point.time.median_us > 0 ? operations / point.time.median_us * 1e-3 : 0;
}

double spread_percent(const profile::Sample& time) {
  return time.median_us > 0 ? 100 * time.deviation_us / time.median_us : 0;
}

std::string machine_text(const profile::Profile& profile) {
  const profile::Machine& m = profile.machine;
  std::string text = fmt::format("machine: {}, {} cores\n", m.cpu, m.cores);
  text += fmt::format("power: governor {}, profile {}, source {}, clock {}\n", m.governor,
                      m.power_profile, m.power_source,
                      m.clock_mhz > 0 ? fmt::format("{:.0f} MHz", m.clock_mhz) : "not told");
  if (m.meters.empty()) text += "meters: none (no powercap, hwmon or battery tells power here)\n";
  for (const profile::PowerMeter& meter : m.meters) {
    text += fmt::format("meter: {} ({}): {:.2f} W while profiling\n", meter.name, meter.kind,
                        meter.mean_w);
  }
  const profile::ProfiledModel& model = profile.model;
  text += fmt::format("model: {}, {}, {} layers of {}, KV {}\n", model.name, model.type,
                      model.n_layers, model.hidden, model.kv_type);
  text += fmt::format("measured in {:.0f} s{}\n", profile.took_s,
                      profile.complete ? "" : "; INTERRUPTED, run 'troika profile' to go on");
  return text;
}

std::string rules_text(const DeviceProfile& d) {
  std::string text = fmt::format("\n{} ({}): {}\n", d.name, d.kind, d.description);
  if (!d.standard_rows.empty()) {
    text +=
        fmt::format("  rows: a staircase of the lengths {}\n", fmt::join(d.standard_rows, ", "));
  } else if (d.row_tile > 1) {
    text += fmt::format("  rows: a staircase of {} rows a step\n", d.row_tile);
  } else {
    text += "  rows: linear between measured points\n";
  }
  text += fmt::format("  outputs: {}\n", d.n_tile > 1
                                             ? fmt::format("padded to multiples of {}", d.n_tile)
                                             : std::string("not padded"));
  text += fmt::format("  order of operands: {}\n", d.chooses_order ? "matters" : "no difference");
  text += fmt::format("  largest error at {} points that were held out: {:.1f} %\n",
                      d.checks.size(), 100 * d.stated_error());
  text += fmt::format("  reads weights with {:.1f} GB/s, copies rows with {:.1f} GB/s\n",
                      d.read_gbps, d.copy_gbps);
  text += fmt::format(
      "  us: task {:.1f}, submit {:.1f}, start when idle {:.1f}, next in queue {:.1f}, notice "
      "{:.1f}\n",
      d.launch.task_us, d.launch.submit_us, d.launch.drained_us, d.launch.queued_us,
      d.launch.notice_us);
  return text;
}

std::string product_table(const DeviceProfile& d) {
  std::vector<const ProductPoint*> points;
  for (const ProductPoint& point : d.products) points.push_back(&point);
  std::stable_sort(points.begin(), points.end(), [](const auto* a, const auto* b) {
    return std::tie(a->n, a->k, a->type, a->order, a->rows) <
           std::tie(b->n, b->k, b->type, b->order, b->rows);
  });
  std::string text = fmt::format("\n  {:>12} {:>5} {:>7} {:>5} {:>11} {:>7} {:>8}\n", "N x K",
                                 "type", "in place", "rows", "us", "+- %", "GFLOPS");
  for (const ProductPoint* p : points) {
    text += fmt::format("  {:>12} {:>5} {:>8} {:>5} {:>11.1f} {:>7.1f} {:>8.1f}\n",
                        fmt::format("{}x{}", p->n, p->k), p->type, to_string(p->order), p->rows,
                        p->time.median_us, spread_percent(p->time), gflops(*p));
  }
  return text;
}

std::string other_tables(const DeviceProfile& d) {
  std::string text;
  if (!d.attention.empty()) {
    text += fmt::format("\n  {:<12} {:>5} {:>6} {:>11} {:>7}\n", "attention", "rows", "depth", "us",
                        "+- %");
  }
  for (const profile::AttentionPoint& p : d.attention) {
    text +=
        fmt::format("  {:<12} {:>5} {:>6} {:>11.1f} {:>7.1f}\n", fmt::format("{} heads", p.n_heads),
                    p.rows, p.depth, p.time.median_us, spread_percent(p.time));
  }
  if (!d.elementwise.empty()) {
    text += fmt::format("\n  {:<12} {:>5} {:>6} {:>11} {:>7}\n", "operator", "rows", "width", "us",
                        "GB/s");
  }
  for (const profile::ElementwisePoint& p : d.elementwise) {
    text +=
        fmt::format("  {:<12} {:>5} {:>6} {:>11.2f} {:>7.1f}\n", p.op, p.rows, p.width,
                    p.time.median_us, p.time.median_us > 0 ? p.bytes / p.time.median_us * 1e-3 : 0);
  }
  if (!d.layers.empty()) text += fmt::format("\n  {:<12} {:>5} {:>18}\n", "layer", "rows", "us");
  for (const profile::LayerPoint& p : d.layers) {
    text += fmt::format("  {:<12} {:>5} {:>18.1f}\n", "whole", p.rows, p.time.median_us);
  }
  // Of each length the mean.
  std::map<int64_t, std::pair<double, int>> builds;
  for (const profile::BuildPoint& p : d.builds) {
    builds[p.rows].first += p.build_us;
    ++builds[p.rows].second;
  }
  for (const auto& [rows, sum] : builds) {
    text += fmt::format("  graph of {:>5} rows: built in {:.1f} ms ({} built)\n", rows,
                        sum.first / sum.second * 1e-3, sum.second);
  }
  return text;
}

}  // namespace

std::string profile_text(const profile::Profile& profile) {
  std::string text = machine_text(profile);
  for (const DeviceProfile& device : profile.devices) {
    text += rules_text(device) + product_table(device) + other_tables(device);
  }
  for (const profile::PairProfile& p : profile.pairs) {
    text += fmt::format(
        "\n{} and {} together: {:.1f} GB/s; they keep {:.0f} % and {:.0f} % of their speeds; a "
        "join takes {:.1f} us in the queue, {:.1f} us by a caller that blocks\n",
        p.first, p.second, p.together_gbps, 100 * p.first_keeps, 100 * p.second_keeps, p.join_us,
        p.blocking_join_us);
  }
  return text;
}

std::string profile_page(const profile::Profile& profile) {
  const std::string title =
      profile.model.name.empty() ? "Profile" : "Profile: " + profile.model.name;
  return web::profile_page(html_escaped(title), script_safe(profile::to_json(profile)));
}

}  // namespace troika::cli
