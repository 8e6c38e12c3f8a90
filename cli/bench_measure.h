// Measures one test of a benchmark on an engine.
#pragma once

#include <map>

#include "cli/bench_row.h"
#include "cli/load.h"
#include "troika/engine/engine.h"

namespace troika::cli {

// Fills in what was measured: samples, and what the devices did. kCancelled on Ctrl-C.
Status measure(engine::Engine& engine, const BenchTest& test, int64_t repetitions, bool warm_up,
               BenchRow& row);

// What the test computes and reads at least, from the engine's own counts.
TestWork least_work(const engine::Engine& engine, const BenchTest& test);

// A row with everything but samples, uses, work and peak.
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
