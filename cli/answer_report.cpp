#include "cli/answer_report.h"

#include <algorithm>

namespace troika::cli {
namespace {

// Part of one core's time, in percent.
double percent_of_core(Duration cpu, Duration elapsed) {
  return elapsed > Duration::zero() ? 100 * to_seconds(cpu) / to_seconds(elapsed) : 0;
}

Json control_json(const engine::Answer& answer) {
  const engine::ControlUse& control = answer.control;
  return {{"submit_ms", to_ms(control.submit)},
          {"wait_ms", to_ms(control.wait)},
          {"sample_ms", to_ms(control.sample)},
          {"percent_of_core", percent_of_core(control.sum(), answer.elapsed)},
          {"thread_ms", to_ms(control.thread)},
          {"other_threads_ms", to_ms(control.others)}};
}

double per_pass_us(Duration time, const engine::ControlUse& control) {
  return control.passes == 0 ? 0 : to_us(time) / static_cast<double>(control.passes);
}

std::string device_line(const engine::DeviceUse& use, Duration elapsed) {
  return fmt::format(
      "[{}: {:.0f} % of the work, busy {:.0f} ms, waited {:.0f} ms, {:.0f} ms on cores = {:.0f} % "
      "of {}]\n",
      use.name, 100 * use.share, to_ms(use.busy), to_ms(use.wait), to_ms(use.cpu),
      percent_of_core(use.cpu, elapsed) / std::max(use.threads, 1),
      use.threads > 1 ? fmt::format("{} cores", use.threads) : "a core");
}

}  // namespace

Json use_json(const engine::DeviceUse& use, Duration elapsed) {
  return {{"name", use.name},
          {"share", use.share},
          {"busy_ms", to_ms(use.busy)},
          {"wait_ms", to_ms(use.wait)},
          {"tasks", use.tasks},
          {"joins", use.joins},
          {"join_wait_ms", to_ms(use.join_wait)},
          {"threads", use.threads},
          {"cpu_ms", to_ms(use.cpu)},
          {"cpu_percent_of_core", percent_of_core(use.cpu, elapsed)}};
}

Json answer_json(const LoadedEngine& loaded, const std::vector<model::TokenId>& prompt,
                 const engine::GenerateOptions& options, const engine::Answer& answer) {
  Json devices = Json::array();
  for (const engine::DeviceUse& use : answer.devices) {
    devices.push_back(use_json(use, answer.elapsed));
  }
  const engine::Engine& engine = *loaded.engine;
  const engine::EngineOptions& effective = engine.options();
  Json json = {{"prompt_tokens", prompt},
               {"tokens", answer.tokens},
               {"text", answer.text},
               {"finish_reason", std::string(to_string(answer.finish_reason))},
               {"ttft_ms", to_ms(answer.ttft)},
               {"tpot_ms", to_ms(answer.tpot)},
               {"prefill_tok_s", answer.prefill_tok_s},
               {"decode_tok_s", answer.decode_tok_s},
               {"load_ms", to_ms(loaded.load_time)},
               {"compile_ms", to_ms(engine.compile_time())},
               {"devices", devices},
               {"plan", engine.plan().reason},
               {"elapsed_ms", to_ms(answer.elapsed)},
               {"control", control_json(answer)},
               {"control_us_per_pass", per_pass_us(answer.control.sum(), answer.control)},
               {"gather_bytes", answer.control.gather_bytes}};
  if (options.logprobs > 0) {
    Json positions = Json::array();
    for (const auto& position : answer.top_logprobs) {
      Json entries = Json::array();
      for (const engine::TokenLogprob& entry : position) {
        entries.push_back({{"id", entry.id}, {"logprob", entry.logprob}});
      }
      positions.push_back(std::move(entries));
    }
    json["top_logprobs"] = std::move(positions);
  }
  json["model"] = engine.model().path();
  json["seed"] = options.sampling.seed;
  json["context"] = effective.context;
  json["threads"] = effective.threads;
  json["activations"] = engine.plan().activations;
  json["kv_type"] = std::string(device::to_string(effective.kv_type));
  Json memory = Json::object();
  for (const auto& [owner, bytes] : engine.memory()) memory[owner] = bytes;
  json["memory_bytes"] = std::move(memory);
  return json;
}

std::string answer_summary(const engine::Answer& answer) {
  std::string line = fmt::format("\n[prompt {} tokens", answer.prompt_tokens);
  if (answer.cached_tokens > 0) line += fmt::format(" ({} cached)", answer.cached_tokens);
  line += fmt::format(", {:.1f} tok/s; first token after {:.0f} ms", answer.prefill_tok_s,
                      to_ms(answer.ttft));
  line += fmt::format("; answer {} tokens", answer.tokens.size());
  if (answer.decode_tok_s > 0) {
    line += fmt::format(", {:.1f} tok/s, {:.1f} ms each", answer.decode_tok_s, to_ms(answer.tpot));
  }
  line += fmt::format("; {}]\n", to_string(answer.finish_reason));
  for (const engine::DeviceUse& use : answer.devices) line += device_line(use, answer.elapsed);
  const engine::ControlUse& control = answer.control;
  line += fmt::format(
      "[control: {:.0f} us for each pass ({:.0f} submit, {:.0f} wait, {:.0f} sample), {:.1f} % of "
      "a core",
      per_pass_us(control.sum(), control), per_pass_us(control.submit, control),
      per_pass_us(control.wait, control), per_pass_us(control.sample, control),
      percent_of_core(control.sum(), answer.elapsed));
  // Little is what clocks of threads differ by.
  if (control.others > answer.elapsed / 100) {
    line += fmt::format("; threads of nobody above: {:.0f} ms", to_ms(control.others));
  }
  return line + "]\n";
}

}  // namespace troika::cli
