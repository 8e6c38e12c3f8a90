#include "cli/forecast_report.h"

#include <algorithm>

namespace troika::cli {
namespace {

using forecast::UnitUse;

bool has_power(const soc::Soc& soc) {
  return soc.idle_power.value > 0 ||
         std::any_of(soc.units.begin(), soc.units.end(),
                     [](const soc::Unit& unit) { return unit.power.has_value(); });
}

std::string band_text(const ForecastReport& report) {
  if (!report.band) return "unknown: no published figure has been compared for this chip and stack";
  return fmt::format("{:.1f}  mean of {} published figures, at most {:.1f}",
                     report.band->mean_error_pct, report.band->cases,
                     report.band->largest_error_pct);
}

std::string unit_line(const UnitUse& use) {
  std::string line =
      fmt::format("{:<8}  {:>7.1f} %  {:>10.3f} ms  {:>7.1f} %  {:>10.3f} ms  {:>8.3f} J", use.name,
                  100 * use.prefill_share, use.prefill_busy_ms, 100 * use.decode_share,
                  use.decode_busy_ms, use.energy_j);
  if (use.sessions > 1) line += fmt::format("  {} sessions", use.sessions);
  return line + "\n";
}

std::string bound_units(const ForecastReport& report) {
  std::string names;
  for (const size_t device : report.answer.bound.devices) {
    names += (names.empty() ? "" : ", ") + report.soc.units[device].name;
  }
  return names;
}

std::string rounded(double value) { return fmt::format("{:.1f}", value); }

}  // namespace

std::string check_command(const ForecastReport& report) {
  std::string devices;
  std::string missing;
  for (const soc::Unit& unit : report.soc.units) {
    const std::string device = soc::device_of(unit);
    std::string& list = device.empty() ? missing : devices;
    list += (list.empty() ? "" : ",") + (device.empty() ? unit.name : device);
  }
  std::string command = fmt::format("troika bench -m MODEL.gguf -p {} -n {} -d 0,{} --device {}",
                                    report.question.prompt, report.question.generate,
                                    report.question.prompt, devices);
  if (!missing.empty()) command += "  # no device of Troika drives " + missing + " yet";
  return command;
}

std::string report_text(const ForecastReport& report) {
  const forecast::Answer& answer = report.answer;
  std::string text = fmt::format(
      "{}, {}, {} tokens in and {} out, strategy {}\n{}\nsimulated from a description, not "
      "measured; {}\n\n",
      report.soc.name, report.model, report.question.prompt, report.question.generate,
      report.question.strategy, report.soc.stack, report.settings);
  const auto line = [&text](const char* name, double value, const std::string& more = "") {
    text += fmt::format("{:<15}  {:>10.3f}{}{}\n", name, value, more.empty() ? "" : "  ", more);
  };
  const auto spread = [&](const forecast::Spread& s) {
    return report.question.variation.any()
               ? fmt::format("with noise {:.3f} in the mean, {:.3f} in nine of ten", s.mean_ms,
                             s.p90_ms)
               : std::string();
  };
  line("ttft_ms", answer.ttft_ms, spread(answer.ttft_spread));
  line("prefill_tok_s", answer.prefill_tok_s);
  line("tpot_ms", answer.tpot_ms, spread(answer.tpot_spread));
  line("decode_tok_s", answer.decode_tok_s);
  if (has_power(report.soc)) {
    line("energy_j", answer.energy_j,
         fmt::format("{:.3f} of it in prefill", answer.prefill_energy_j));
    line("power_w", answer.power_w,
         fmt::format("{:.2f} in prefill, {:.2f} in decode", answer.prefill_power_w,
                     answer.decode_power_w));
  } else {
    text += "energy_j         unknown: the description has no power\n";
  }
  text += fmt::format("{:<15}  {}\n", "error_band_pct", band_text(report));
  line("bound_ms", answer.bound_ms(),
       fmt::format("the least for this prefill, on {}; the forecast is {:.1f} % above it",
                   bound_units(report), 100 * (answer.ttft_ms / answer.bound_ms() - 1)));
  text += fmt::format("\n{:<8}  {:>9}  {:>13}  {:>9}  {:>13}  {:>10}\n", "unit", "prefill",
                      "at work", "decode", "at work", "energy");
  for (const UnitUse& use : answer.units) text += unit_line(use);
  for (size_t i = 0; i < report.question.frames.size(); ++i) {
    const forecast::Frames& frames = report.question.frames[i];
    const auto done = [&](const std::vector<double>& part) {
      return i < part.size() ? part[i] * frames.per_second : 0;
    };
    text += fmt::format("{} of {} frames a second on {} in prefill, {} in decode\n",
                        rounded(done(answer.prefill_frames)), frames.per_second, frames.unit,
                        rounded(done(answer.decode_frames)));
  }
  text += fmt::format("\nprefill: {}\ndecode: {}\n", answer.prefill_plan, answer.decode_plan);
  text += fmt::format("{} schedules were tried; {:.2f} GB of weights and cache\n",
                      answer.evaluations, answer.memory_gb);
  return text + "to check it on the chip: " + check_command(report) + "\n";
}

Json report_json(const ForecastReport& report) {
  const forecast::Answer& answer = report.answer;
  const auto if_known = [known = has_power(report.soc)](double value) {
    return known ? Json(value) : Json();
  };
  Json units = Json::array();
  for (const UnitUse& use : answer.units) {
    units.push_back({{"name", use.name},
                     {"prefill_share", use.prefill_share},
                     {"prefill_busy_ms", use.prefill_busy_ms},
                     {"decode_share", use.decode_share},
                     {"decode_busy_ms", use.decode_busy_ms},
                     {"energy_j", if_known(use.energy_j)},
                     {"weights_gb", use.weights_gb},
                     {"sessions", use.sessions}});
  }
  Json object = {{"simulated", true},
                 {"soc", report.soc.name},
                 {"stack", report.stack},
                 {"stack_description", report.soc.stack},
                 {"model", report.model},
                 {"prompt", report.question.prompt},
                 {"generate", report.question.generate},
                 {"strategy", report.question.strategy},
                 {"settings", report.settings},
                 {"ttft_ms", answer.ttft_ms},
                 {"prefill_tok_s", answer.prefill_tok_s},
                 {"tpot_ms", answer.tpot_ms},
                 {"decode_tok_s", answer.decode_tok_s},
                 {"energy_j", if_known(answer.energy_j)},
                 {"power_w", if_known(answer.power_w)}};
  object["error_band_pct"] = report.band ? Json(report.band->mean_error_pct) : Json();
  object["bound_ms"] = answer.bound_ms();
  object["prefill_energy_j"] = if_known(answer.prefill_energy_j);
  object["prefill_power_w"] = if_known(answer.prefill_power_w);
  object["decode_power_w"] = if_known(answer.decode_power_w);
  if (report.question.variation.any()) {
    object["ttft_mean_ms"] = answer.ttft_spread.mean_ms;
    object["ttft_p90_ms"] = answer.ttft_spread.p90_ms;
    object["tpot_mean_ms"] = answer.tpot_spread.mean_ms;
    object["tpot_p90_ms"] = answer.tpot_spread.p90_ms;
  }
  if (!report.question.frames.empty()) {
    object["prefill_frames"] = answer.prefill_frames;
    object["decode_frames"] = answer.decode_frames;
  }
  object["units"] = std::move(units);
  object["prefill_plan"] = answer.prefill_plan;
  object["decode_plan"] = answer.decode_plan;
  object["evaluations"] = answer.evaluations;
  object["memory_gb"] = answer.memory_gb;
  object["weight_bits"] = answer.weight_bits;
  object["head_bits"] = answer.head_bits;
  object["check"] = check_command(report);
  return object;
}

}  // namespace troika::cli
