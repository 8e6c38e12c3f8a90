// Many forecasts on all cores: chips x models x lengths x strategies.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "troika/forecast/forecast.h"

namespace troika::forecast {

struct SweepChip {
  std::string name;  // of the row; a chip and one of its stacks
  soc::Soc soc;
};
struct SweepModel {
  std::string name;
  ShapedModel model;
};
struct SweepCase {
  size_t chip = 0;   // in the list of chips
  size_t model = 0;  // in the list of models
  int64_t prompt = 1;
  int64_t generate = 1;
  std::string strategy;
};

struct SweepOptions {
  Question question;  // all but what a case says
  size_t threads = 1;
  const std::atomic<bool>* stop = nullptr;  // true: no further case is begun
};

// Called once for each case that was done, in the order in which they end, from one thread at a
// time. An error ends the sweep.
using SweepRow = std::function<Status(const SweepCase&, const Result<Answer>&)>;

// The same rows in any order, whatever the number of threads. Borrows all that it is given.
Status sweep(std::span<const SweepChip> chips, std::span<const SweepModel> models,
             std::span<const SweepCase> cases, const SweepOptions& options, const SweepRow& row);

}  // namespace troika::forecast
