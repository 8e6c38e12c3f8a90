#include "troika/planner/strategy.h"

#include <charconv>

namespace troika::planner {
namespace {

constexpr std::string_view kSingle = "single:";
// What a cut must gain at least: less is within what a chip's runs differ by, and two devices that
// add less to each other's bandwidth only heat each other.
constexpr double kLeastGain = 0.05;
// The published quanta (HeteroMosaic): precompiled kernels are bound to multiples of these.
constexpr int64_t kMosaicQuantum = 256;
constexpr int64_t kMostGrid = 4096;

// The published grids (HeteroInfer): quarters for one token, fifths for more.
Strategy heteroinfer() {
  Strategy strategy;
  strategy.cut_outputs = strategy.cut_rows = true;
  strategy.grid_one_row = 4;
  strategy.grid = 5;
  return strategy;
}

}  // namespace

Result<Strategy> strategy_from(std::string_view name) {
  Strategy strategy;
  if (name.substr(0, kSingle.size()) == kSingle && name.size() > kSingle.size()) {
    strategy.device = name.substr(kSingle.size());
  } else if (name == "padding" || name == "online" || name == "pipe") {
    strategy.static_only = true;
    strategy.rows = name == "padding"  ? Rows::kStandard
                    : name == "online" ? Rows::kBuilt
                                       : Rows::kPieces;
  } else if (name == "heteroinfer" || name == "heteroinfer-forced") {
    strategy = heteroinfer();
    strategy.guard = name == "heteroinfer";
  } else if (name == "heteromosaic") {
    strategy.cut_one_row = strategy.cut_rows = strategy.cut_inputs = true;
    strategy.row_quantum = strategy.input_quantum = strategy.chunk_quantum = kMosaicQuantum;
    strategy.most_chunks = kMostChunks;
    strategy.windows = {2, 3};
    strategy.tune = true;
    strategy.accept_us = 5000;  // published, as the rest of this rule
    strategy.accept_part = 0.005;
  } else if (name == "troika") {
    strategy.cut_outputs = strategy.cut_rows = strategy.cut_inputs = true;
    strategy.least_gain = kLeastGain;
    strategy.paired = strategy.tune = strategy.all_edits = true;
    strategy.enough_gain = 0.005;
    strategy.most_chunks = kMostChunks;
    strategy.long_chunk = kLongChunk;
    strategy.windows = {0, 2, 3};
    strategy.lags = {0, 1, 3, 5, 7};
  } else if (name != "layer") {
    return make_error(ErrorCode::kInvalidArgument,
                      "strategy '{}' is not known; strategies: single:DEVICE, layer, padding, "
                      "online, pipe, heteroinfer, heteroinfer-forced, heteromosaic, troika",
                      name.substr(0, 60));
  }
  strategy.name = name;
  return strategy;
}

Result<int64_t> grid_from(std::string_view text) {
  int64_t parts = 0;
  const char* end = text.data() + text.size();
  if (text.substr(0, 2) == "1/") {
    const auto [stop, error] = std::from_chars(text.data() + 2, end, parts);
    if (error == std::errc() && stop == end && parts >= 1 && parts <= kMostGrid) return parts;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "grid '{}' is not 1/N with N from 1 to {}, as in 1/4", text.substr(0, 60),
                    kMostGrid);
}

}  // namespace troika::planner
