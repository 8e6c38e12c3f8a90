// Measures one test of a benchmark on an engine.
#pragma once

#include <map>
#include <vector>

#include "cli/bench_row.h"
#include "cli/load.h"
#include "troika/engine/engine.h"

namespace troika::cli {

// The time of each repetition. kCancelled on Ctrl-C between two of them.
Result<std::vector<Duration>> measure(engine::Engine& engine, const BenchTest& test,
                                      int64_t repetitions, bool warm_up);

// What the test computes and reads at least, from the engine's own counts.
TestWork least_work(const engine::Engine& engine, const BenchTest& test);

// A row with everything but samples, work and peak.
BenchRow describe(const LoadedEngine& loaded, const BenchSetting& setting, const BenchTest& test);

// The peaks of this machine by number of threads, each measured once in a run. kCancelled on
// Ctrl-C.
class PeakStore {
 public:
  Result<Peak> of(int threads);

 private:
  std::map<int, Peak> peaks_;
};

}  // namespace troika::cli
