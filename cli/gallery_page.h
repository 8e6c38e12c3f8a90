// Timelines of several strategies side by side, for chips and models: one HTML page without scripts
// that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "troika/forecast/forecast.h"

namespace troika::cli {

struct GalleryRow {
  std::string strategy;
  // nullopt: it cannot be, and `error` says why.
  std::optional<forecast::Answer> answer;
  std::string error;
};

// One chip and model; its rows share a time axis.
struct GalleryGroup {
  std::string title;
  std::string stack;
  std::vector<GalleryRow> rows;
};

// `heading` says what all groups have in common.
std::string gallery_page(const std::string& heading, const std::vector<GalleryGroup>& groups);

}  // namespace troika::cli
