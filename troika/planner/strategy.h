// Strategies: rules by which a product is divided, as settings of one solver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::planner {

// How rows are brought to what a device can have.
enum class Rows {
  kTile,      // padded to a multiple of its tile
  kStandard,  // padded to the next length for which it has a graph
  kPieces,    // in sequence by lengths for which it has graphs
  kBuilt,     // by a graph that is built for them, at once
};

// Micro-batches that are tried: more fill each other's gaps better, but every one has launches and
// joins of its own. Those weigh little once a chunk has some hundred rows: on 27 described prefills
// twice as many of 256 or more came nearer to the least time by 0.3 %.
inline constexpr int64_t kMostChunks = 8;
inline constexpr int64_t kLongChunk = 256;

struct Strategy {
  std::string name;
  std::string device;        // the only one, by name or kind; empty: all
  bool static_only = false;  // only devices with static graphs
  Rows rows = Rows::kTile;
  bool cut_outputs = false;  // weight-centric and hybrid
  bool cut_one_row = false;  // weight-centric for products of one row only
  bool cut_rows = false;     // activation-centric
  bool cut_inputs = false;   // k-cut
  // False: some co-execution is taken even where one device is faster.
  bool guard = true;
  // Shares are multiples of 1 / this; 0: as fine as the tiles.
  int64_t grid_one_row = 0;
  int64_t grid = 0;
  // Rows and inputs are cut at multiples of these, whatever lengths a device has; 0: as above.
  int64_t row_quantum = 0;
  int64_t input_quantum = 0;
  // The least part of the time that a cut must gain over the best single device.
  double least_gain = 0;

  // Of a whole pass. Static devices choose the operand that stays in place; false: the weight does.
  bool operand_order = true;
  bool paired = false;           // gate and up by outputs, then down by inputs on the same slices
  int64_t most_chunks = 1;       // micro-batches
  int64_t long_chunk = 0;        // rows on average with which there may be twice as many; 0: never
  int64_t chunk_quantum = 32;    // their sizes are multiples of it, but for the last one
  std::vector<int64_t> windows;  // chunks in flight that are tried; 0: all
  // Orders by products that are tried: turns between chunks in flight.
  std::vector<int32_t> lags;
  bool tune = false;       // hill climbing on the schedule's trace
  bool all_edits = false;  // any single edit of it; false: shares and pauses only
  // What an edit must gain: the larger of a time and a part of the pass.
  double accept_us = 0;
  double accept_part = 1e-4;
  // A round of edits in which the most critical ones gained such a part is ended there; 0: all are
  // tried.
  double enough_gain = 0;

  int64_t grid_for(int64_t rows_of_product) const {
    return rows_of_product == 1 ? grid_one_row : grid;
  }
  int64_t most_chunks_for(int64_t rows_of_pass) const {
    if (long_chunk <= 0) return most_chunks;
    return std::clamp(rows_of_pass / long_chunk, most_chunks, 2 * most_chunks);
  }
  // A product of one row has outputs to divide, whatever else is divided.
  bool cuts_outputs(int64_t rows_of_product) const {
    return cut_outputs || (cut_one_row && rows_of_product == 1);
  }
};

// "single:DEVICE", "layer", "padding", "online", "pipe", "heteroinfer", "heteroinfer-forced",
// "heteromosaic", "troika". kInvalidArgument listing them.
Result<Strategy> strategy_from(std::string_view name);

// "1/4": shares are multiples of a quarter. kInvalidArgument if it is not "1/N", N up to 4096.
Result<int64_t> grid_from(std::string_view text);

}  // namespace troika::planner
