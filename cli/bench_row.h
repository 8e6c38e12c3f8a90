// One row of a benchmark: what was measured, where, and how near it came to the machine's peak.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_matrix.h"
#include "cli/json_output.h"
#include "troika/base/clock.h"
#include "troika/engine/engine.h"

namespace troika::cli {

// What this machine's cores can do at best, measured in the same run.
struct Peak {
  double gflops = 0;
  double gbps = 0;
};

// The least that a test computes and moves.
struct TestWork {
  double flops = 0;
  double bytes = 0;
};

struct Statistics {
  double mean = 0;
  double stddev = 0;  // of a sample (n - 1); 0 for one
};
Statistics statistics(const std::vector<double>& samples);

struct BenchRow {
  BenchTest test;
  BenchSetting setting;
  std::vector<Duration> samples;
  std::vector<engine::DeviceUse> uses;  // in all samples, and what had to be computed before them
  Duration elapsed{};                   // of these
  TestWork work;
  Peak peak;

  std::string model_type;  // "llama 134.52 M Q4_1"
  std::string model_filename;
  uint64_t model_size = 0;  // bytes
  uint64_t model_n_params = 0;
  std::vector<std::string> devices;
  int threads = 0;
  std::string kernels;
  std::string activations;
  std::string test_time;
  Duration load{};
  Duration compile{};

  // Tokens of the test over the time of each sample.
  std::vector<double> tokens_per_second() const;
  double gflops() const;  // of the mean time
  double gbps() const;
  // Prefill is measured against the peak of arithmetic, decode against that of memory.
  bool bound_by_arithmetic() const { return test.n_prompt > 0; }
  double share_of_peak() const;
};

Json to_json(const BenchRow& row);

}  // namespace troika::cli
