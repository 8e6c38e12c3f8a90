#include "troika/cost/roofline.h"

#include <algorithm>
#include <numeric>

namespace troika::cost {

double Roof::attainable_gflops() const { return std::min(peak_gflops, bandwidth_gbps * intensity); }

// With speeds x_i = P f_i the bound is the largest sum of x_i with x_i <= P_i and
// sum(x_i / I_i) <= B: the devices that need the fewest bytes are filled first.
CoExecutionBound co_execution_bound(std::span<const Roof> roofs, double shared_gbps) {
  std::vector<size_t> order(roofs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return roofs[a].intensity > roofs[b].intensity; });
  CoExecutionBound bound;
  bound.shares.assign(roofs.size(), 0);
  double left_gbps = shared_gbps;
  for (const size_t i : order) {
    const double speed = std::min(roofs[i].attainable_gflops(), left_gbps * roofs[i].intensity);
    left_gbps = std::max(0.0, left_gbps - speed / roofs[i].intensity);
    bound.shares[i] = speed;
    bound.gflops += speed;
  }
  for (double& share : bound.shares) share /= bound.gflops;
  return bound;
}

}  // namespace troika::cost
