// An answer as `run` reports it: the JSON object, and a line for people.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/load.h"
#include "troika/engine/engine.h"

namespace troika::cli {

// Keys: see docs/cli.md.
Json answer_json(const LoadedEngine& loaded, const std::vector<model::TokenId>& prompt,
                 const engine::GenerateOptions& options, const engine::Answer& answer);

// What one device did in `elapsed`.
Json use_json(const engine::DeviceUse& use, Duration elapsed);

// "[prompt 12 tokens, ...]", with a newline before and after.
std::string answer_summary(const engine::Answer& answer);

}  // namespace troika::cli
