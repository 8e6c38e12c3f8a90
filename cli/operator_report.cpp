#include "cli/operator_report.h"

#include <algorithm>

namespace troika::cli {
namespace {

using planner::Division;
using planner::Slice;

std::string grid_text(const OperatorReport& report) {
  const int64_t grid = report.inputs.strategy.grid_for(report.inputs.product.m);
  return grid > 0 ? fmt::format("1/{}", grid) : "continuous";
}

// By kind, as people speak of them; by name where a chip has two of a kind.
std::string share_key(const OperatorReport& report, size_t device) {
  const auto devices = report.cost.devices();
  const auto same = std::count_if(devices.begin(), devices.end(), [&](const auto& other) {
    return other.kind == devices[device].kind;
  });
  return same > 1 ? devices[device].name : std::string(devices[device].kind);
}

Json slice_json(const OperatorReport& report, const Slice& slice) {
  Json object = {{"device", report.cost.devices()[slice.device].name},
                 {"share", slice.share},
                 {"tokens", slice.rows},
                 {"outputs", slice.outputs},
                 {"inputs", slice.inputs},
                 {"predicted_us", slice.us}};
  if (slice.integer) object["integer"] = true;
  return object;
}

Json division_json(const OperatorReport& report, const Division& division) {
  Json shares = Json::object();
  Json slices = Json::array();
  for (const Slice& slice : division.slices) {
    shares[share_key(report, slice.device)] = slice.share;
    slices.push_back(slice_json(report, slice));
  }
  return {{"cut", to_string(division.cut)},
          {"shares", std::move(shares)},
          {"predicted_us", division.us()},
          {"join_us", division.join_us},
          {"slices", std::move(slices)}};
}

std::string line(const OperatorReport& report, const std::string& label, const Division& division) {
  std::string shares;
  for (const Slice& slice : division.slices) {
    shares += fmt::format("{}{} {:.1f} %{}", shares.empty() ? "" : ", ",
                          report.cost.devices()[slice.device].name, 100 * slice.share,
                          slice.integer ? " (integer)" : "");
  }
  return fmt::format("{:<12}  {:<18}  {:>10.1f}  {}\n", label, to_string(division.cut),
                     division.us(), shares);
}

}  // namespace

Json report_json(const OperatorReport& report) {
  const cost::Product& product = report.inputs.product;
  Json object = {{"soc", report.cost.soc().name},
                 {"stack", report.cost.soc().stack},
                 {"simulated", true},
                 {"weight", {{"outputs", product.n}, {"inputs", product.k}}},
                 {"type", product.type},
                 {"tokens", product.m},
                 {"strategy", report.inputs.strategy.name},
                 {"grid", grid_text(report)}};
  object.update(division_json(report, report.plan.chosen));
  object["reason"] = report.plan.reason;
  object["roofline_us"] = report.plan.roofline_us;
  if (report.plan.continuous) {
    object["continuous"] = division_json(report, *report.plan.continuous);
  }
  object["alternatives"] = Json::array();
  for (const Division& division : report.plan.alternatives) {
    object["alternatives"].push_back(division_json(report, division));
  }
  return object;
}

std::string report_text(const OperatorReport& report) {
  const cost::Product& product = report.inputs.product;
  const soc::Soc& soc = report.cost.soc();
  std::string text = fmt::format(
      "{}: {} outputs, {} inputs, {} token{}, {}\n{}\n"
      "forecast from a description, not measured; strategy {}, grid {}\n\n",
      soc.name, product.n, product.k, product.m, product.m == 1 ? "" : "s", product.type, soc.stack,
      report.inputs.strategy.name, grid_text(report));
  text += fmt::format("{:<12}  {:<18}  {:>10}  {}\n", "", "cut", "us", "shares");
  text += line(report, "plan", report.plan.chosen);
  if (report.plan.continuous) text += line(report, "continuous", *report.plan.continuous);
  for (const Division& division : report.plan.alternatives) {
    text += line(report, "alternative", division);
  }
  text += fmt::format("{:<12}  {:<18}  {:>10.1f}  all devices, without joins and padding\n",
                      "roofline", "", report.plan.roofline_us);
  return text + "\n" + report.plan.reason + "\n";
}

}  // namespace troika::cli
