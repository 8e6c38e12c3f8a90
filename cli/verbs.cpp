#include "cli/verbs.h"

#include <array>

#include "cli/text.h"

namespace troika::cli {
namespace {

constexpr std::array kVerbs = {
    VerbEntry{"run", "Answer one prompt", make_run},
    VerbEntry{"chat", "Talk with a model", make_chat},
    VerbEntry{"bench", "Measure prefill and decode speed", make_bench},
    VerbEntry{"inspect", "Show what a model file holds", make_inspect},
    VerbEntry{"tokenize", "Show the tokens of a text", make_tokenize},
    VerbEntry{"perplexity", "Score a text", make_perplexity},
    VerbEntry{"devices", "List the devices of this machine", make_devices},
    VerbEntry{"doctor", "Examine the devices of this machine", make_doctor},
    VerbEntry{"profile", "Measure devices on the shapes of a model", make_profile},
    VerbEntry{"plan", "Plan a product or a model on a described chip", make_plan},
    VerbEntry{"simulate", "Forecast a model on a described chip", make_simulate},
    VerbEntry{"sweep", "Forecast many models on many described chips", make_sweep},
    VerbEntry{"gallery", "Show strategies on described chips side by side", make_gallery},
    VerbEntry{"reproduce", "Simulate what papers measured", make_reproduce},
    VerbEntry{"soc", "Show a described chip, or describe this machine", make_soc},
    VerbEntry{"trace", "Show who did what in a recorded run", make_trace},
    VerbEntry{"synth", "Write a model of random weights", make_synth},
    VerbEntry{"completion", "Print a shell completion script", make_completion},
};

// Tries a device in a process of its own.
constexpr VerbEntry kProbe{"probe-device", "Open and check a device", make_probe_device};

struct Alias {
  std::string_view name;
  std::string_view verb;
};

// What other engines call the same thing.
constexpr std::array kAliases = {Alias{"show", "inspect"}};

}  // namespace

std::span<const VerbEntry> verbs() { return kVerbs; }

const VerbEntry* find_verb(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) name = alias.verb;
  }
  for (const VerbEntry& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  if (name == kProbe.name) return &kProbe;
  return nullptr;
}

Error unknown_verb(std::string_view name) {
  std::vector<std::string> names;
  for (const VerbEntry& verb : kVerbs) names.emplace_back(verb.name);
  const std::string near = nearest(name, names);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("unknown verb {}{}; verbs: {}", in_quotes(name),
                           near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                           fmt::join(names, ", "))};
}

}  // namespace troika::cli
