#include "cli/pass_report.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace troika::cli {
namespace {

using planner::PassPlan;

// Of what was tried besides: the nearest ones tell enough.
constexpr size_t kShownAlternatives = 6;

double per_second(int64_t rows, double us) { return static_cast<double>(rows) / us * 1e6; }

std::string rows_name(int64_t rows) { return rows == 1 ? "decode" : fmt::format("{} rows", rows); }

std::string placement_line(const plan::Placement& placement) {
  std::string name(to_string(placement.stage));
  if (!placement.op.empty()) name += " " + placement.op;
  if (placement.chunk >= 0) name += fmt::format(", chunk {}", placement.chunk);
  std::string shares;
  double sum = 0;
  for (const plan::Part& part : placement.parts) sum += part.share;
  for (const plan::Part& part : placement.parts) {
    shares += fmt::format("{}{} {:.1f} %", shares.empty() ? "" : ", ", part.device,
                          100 * part.share / sum);
  }
  if (placement.delay_us > 0) shares += fmt::format("; after {:.0f} us", placement.delay_us);
  return fmt::format("    {:<16}  {:<18}  {}\n", name, to_string(placement.cut), shares);
}

std::string chunks_line(const plan::RowsBucket& bucket) {
  if (bucket.chunks.empty()) return {};
  std::string sizes;
  for (const int64_t size : bucket.chunks) {
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  }
  return fmt::format("    chunks of {} rows, {} in flight, order {}\n", sizes,
                     bucket.in_flight == 0 ? "all" : fmt::format("{}", bucket.in_flight),
                     order_name(bucket));
}

std::string explained(const PassReport& report, const PassPlan& pass) {
  std::string text = chunks_line(pass.bucket);
  for (const plan::Placement& placement : pass.bucket.placements) text += placement_line(placement);
  for (size_t i = 0; i < pass.forecast.busy_us.size(); ++i) {
    if (pass.forecast.busy_us[i] <= 0) continue;
    const double mj = pass.forecast.energy_mj[i];
    text += fmt::format("    {:<16}  at work {:.0f} % of the time, reads {:.2f} GB of weights{}\n",
                        report.cost.devices()[i].name,
                        100 * pass.forecast.busy_us[i] / pass.forecast.us,
                        static_cast<double>(pass.forecast.weight_bytes[i]) / 1e9,
                        mj > 0 ? fmt::format(", draws {:.1f} mJ", mj) : "");
  }
  for (const planner::TunedBy& edit : pass.edits) {
    text += fmt::format("    tuned: {}: {:.3f} ms\n", edit.edit, edit.us / 1e3);
  }
  const size_t shown = std::min(pass.alternatives.size(), kShownAlternatives);
  for (const planner::PassAlternative& other : std::span(pass.alternatives).first(shown)) {
    const std::string time = std::isfinite(other.predicted_us)
                                 ? fmt::format("{:.3f} ms", other.predicted_us / 1e3)
                                 : std::string("cannot be");
    text += fmt::format("    not {:<28}  {:>12}  {}\n", other.name, time, other.why_not);
  }
  if (pass.alternatives.size() > shown) {
    text += fmt::format("    and {} more, by --json or --html\n", pass.alternatives.size() - shown);
  }
  return text + fmt::format("    {} schedules were tried\n", pass.evaluations);
}

}  // namespace

std::string report_text(const PassReport& report, bool explain) {
  std::string text =
      fmt::format("{}, {}, strategy {}, objective {}\n{}\n{}\n\n", report.chip, report.model,
                  report.strategy, report.plan.plan.objective, report.stack,
                  report.simulated ? "forecast from a description, not measured"
                                   : "forecast from measurements");
  for (const PassPlan& pass : report.plan.passes) {
    const int64_t rows = pass.bucket.max_rows;
    const double mj = pass.forecast.mj();
    text += fmt::format("{:<10}  {:>11.3f} ms  {:>9.2f} tok/s  {}{}\n", rows_name(rows),
                        pass.forecast.us / 1e3, per_second(rows, pass.forecast.us),
                        mj > 0 ? fmt::format("{:>10.1f} mJ  ", mj) : "", pass.reason);
    if (explain) text += explained(report, pass);
  }
  return text;
}

Json report_json(const PassReport& report) {
  Json passes = Json::array();
  for (const PassPlan& pass : report.plan.passes) {
    Json alternatives = Json::array();
    for (const planner::PassAlternative& other : pass.alternatives) {
      Json one = {{"name", other.name}};
      if (std::isfinite(other.predicted_us)) one["predicted_us"] = other.predicted_us;
      if (other.predicted_mj > 0) one["predicted_mj"] = other.predicted_mj;
      one["why_not"] = other.why_not;
      alternatives.push_back(std::move(one));
    }
    Json devices = Json::array();
    for (size_t i = 0; i < pass.forecast.busy_us.size(); ++i) {
      devices.push_back({{"device", report.cost.devices()[i].name},
                         {"busy_us", pass.forecast.busy_us[i]},
                         {"weight_bytes", pass.forecast.weight_bytes[i]},
                         {"energy_mj", pass.forecast.energy_mj[i]}});
    }
    Json edits = Json::array();
    for (const planner::TunedBy& edit : pass.edits) {
      edits.push_back({{"edit", edit.edit}, {"predicted_us", edit.us}});
    }
    const int64_t rows = pass.bucket.max_rows;
    passes.push_back({{"rows", rows},
                      {"depth", rows == 1 ? report.depth : 0},
                      {"predicted_us", pass.forecast.us},
                      {"predicted_mj", pass.forecast.mj()},
                      {"tokens_per_second", per_second(rows, pass.forecast.us)},
                      {"name", pass.name},
                      {"co_executes", pass.co_executes},
                      {"reason", pass.reason},
                      {"best_single", pass.best_single},
                      {"best_single_us", pass.best_single_us},
                      {"devices", std::move(devices)},
                      {"edits", std::move(edits)},
                      {"alternatives", std::move(alternatives)},
                      {"evaluations", pass.evaluations}});
  }
  return {{"soc", report.chip},
          {"stack", report.stack},
          {"simulated", report.simulated},
          {"model", report.model},
          {"strategy", report.strategy},
          {"objective", report.plan.plan.objective},
          {"passes", std::move(passes)},
          {"plan", Json::parse(plan::to_json(report.plan.plan))}};
}

std::string ablation_text(const std::vector<planner::AblationRow>& rows, int64_t tokens) {
  std::string text = fmt::format("{:<22}  {:>11}  {:>9}  {:>6}\n", "", "ms", "tok/s", "times");
  for (const planner::AblationRow& row : rows) {
    text += fmt::format("{:<22}  {:>11.3f}  {:>9.2f}  {:>6.2f}\n", row.name, row.us / 1e3,
                        per_second(tokens, row.us), row.gain);
  }
  return text + "forecast from a description, not measured\n";
}

Json ablation_json(const std::vector<planner::AblationRow>& rows, int64_t tokens) {
  Json all = Json::array();
  for (const planner::AblationRow& row : rows) {
    all.push_back({{"name", row.name},
                   {"predicted_us", row.us},
                   {"tokens_per_second", per_second(tokens, row.us)},
                   {"gain", row.gain},
                   {"plan", row.plan.name}});
  }
  return {{"simulated", true}, {"tokens", tokens}, {"rows", std::move(all)}};
}

}  // namespace troika::cli
