// What `troika reproduce` says: published figures beside simulated ones.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "troika/reproduce/comparison.h"

namespace troika::cli {

std::string comparison_text(const reproduce::Comparison& comparison);
Json comparison_json(const reproduce::Comparison& comparison);
// validation/*.json: by chip and stack, how far figures that validate are off.
Json error_bands_json(const reproduce::Comparison& comparison);
// docs/validation.md.
std::string comparison_markdown(const reproduce::Comparison& comparison);
// A page by itself, with `plots` (HTML) before the tables.
std::string comparison_html(const reproduce::Comparison& comparison, const std::string& plots = {});

}  // namespace troika::cli
