// The heterogeneous roofline: the most that several devices on one memory can do together.
#pragma once

#include <span>
#include <vector>

namespace troika::cost {

// One device on one kind of work. Efficiencies are inside: what it reaches, not what it could.
struct Roof {
  double peak_gflops = 0;
  double bandwidth_gbps = 0;
  double intensity = 0;  // operations per byte

  double attainable_gflops() const;  // min(peak, bandwidth * intensity)
};

struct CoExecutionBound {
  double gflops = 0;
  std::vector<double> shares;  // of the work, by device; they sum to 1
};

// max over shares f of min( min_i P_i / f_i, B / sum(f_i / I_i) ), P_i a device's attainable speed
// and B what all reach of the memory together. HeteroMosaic's roofline (arXiv 2607.12839) with
// measured values for peaks. Every attainable speed must be above 0.
CoExecutionBound co_execution_bound(std::span<const Roof> roofs, double shared_gbps);

}  // namespace troika::cost
