// Published figures beside simulated ones: errors, means, and who is off by how much.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "troika/published/paper.h"
#include "troika/reproduce/runs.h"

namespace troika::reproduce {

struct Row {
  std::string paper;
  published::Case figure;
  std::optional<double> simulated;  // nothing where the case is left out
  // By how much the simulated figure is off: percent of the published one, or percentage points
  // where that is a share or a saving. 0 within a published range; else from its nearer end.
  double error_pct = 0;
};

// Of what kind of figures.
struct MeanError {
  int64_t count = 0;
  double mean_pct = 0;  // of absolute errors
  int64_t above_25 = 0;
};

struct Comparison {
  std::vector<Row> rows;
  MeanError calibration;
  MeanError validation;  // neither calibrated nor held by a description
};

double error_pct(const published::Case& figure, double simulated);

struct CompareOptions {
  int threads = 1;
  bool only_calibrated = false;
  // Called with passes done and in all, from any thread, one call at a time; false cancels.
  std::function<bool(size_t, size_t)> progress;
};

// The error of the first case that cannot be simulated, with its name. kCancelled.
Result<Comparison> compare(const std::vector<published::Paper>& papers, Runs& runs,
                           const CompareOptions& options);

}  // namespace troika::reproduce
