#include "cli/answer_report.h"

namespace troika::cli {
namespace {

double control_us_per_pass(const runtime::ControlWork& control) {
  if (control.passes == 0) return 0;
  return to_us(control.submit + control.wait) / static_cast<double>(control.passes);
}

}  // namespace

Json answer_json(const LoadedEngine& loaded, const std::vector<model::TokenId>& prompt,
                 const engine::GenerateOptions& options, const engine::Answer& answer) {
  Json devices = Json::array();
  for (const engine::DeviceUse& use : answer.devices) {
    devices.push_back({{"name", use.name},
                       {"share", use.share},
                       {"busy_ms", to_ms(use.busy)},
                       {"wait_ms", to_ms(use.wait)},
                       {"tasks", use.tasks},
                       {"joins", use.joins},
                       {"join_wait_ms", to_ms(use.join_wait)}});
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
               {"control_us_per_pass", control_us_per_pass(answer.control)},
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
  if (answer.devices.size() < 2) return line;
  for (const engine::DeviceUse& use : answer.devices) {
    line += fmt::format("[{}: {:.0f} % of the work, busy {:.0f} ms, waited {:.0f} ms]\n", use.name,
                        100 * use.share, to_ms(use.busy), to_ms(use.wait));
  }
  return line + fmt::format("[control: {:.0f} us of a core for each pass]\n",
                            control_us_per_pass(answer.control));
}

}  // namespace troika::cli
