// Measures one device: which points, how they are timed, and what they show of its rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "troika/profile/measure/model_work.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/measure/stopwatch.h"
#include "troika/profile/record/product_law.h"

namespace troika::profile {

class DeviceProfiler {
 public:
  // Borrows all. `step` is called after each point with the device's part that is done, 0 to 1.
  DeviceProfiler(const graph::Graph& graph, const ModelWork& work, device::Device& device,
                 const ProfilerOptions& options, const Clock& clock, DeviceProfile& profile,
                 std::function<void(double)> step);

  Status run();

 private:
  using Shape = ProductShape;
  // Some layers of one length, and their best time by now.
  struct LayerRuns {
    LayerPoint point;
    std::vector<std::shared_ptr<Prepared>> prepared;
  };

  Status launches();
  Status order();
  Status tiles();
  Status products();
  Status slices();
  Status hold_out();
  Status attention();
  Status elementwise();
  Status layers();
  int64_t layers_beyond_caches() const;
  Status prepare_layers();
  Status time_layers();
  // What is run before a task of so many rows and bytes is timed: a pass of few rows finds weights,
  // keys and values in the memory, and a task that is repeated finds them in a cache.
  std::span<const std::shared_ptr<Prepared>> before(int64_t rows, double bytes) const;
  Status bandwidth();

  // Measures a product unless the profile holds it; its time in a task without the task's own cost.
  Result<double> point(const Shape& shape, int64_t rows, int64_t n, int64_t k, Order order);
  // The same, but not kept.
  Result<Sample> probe(const Shape& shape, int64_t rows, int64_t n, int64_t k, Order order,
                       int64_t copies);
  Status both_orders(const Shape& shape, int64_t rows, int64_t n, int64_t k);
  Status refine(std::vector<int64_t>& rows);
  bool knows(const Shape& shape, int64_t rows) const;
  Result<int64_t> tile_of(int64_t base, const std::function<Result<double>(int64_t)>& us);
  ProductLaw law() const { return ProductLaw(profile_.products, Padding::of(profile_)); }

  int64_t compiled_rows(int64_t rows) const;
  bool can_have(int64_t rows) const;
  bool too_large(int64_t rows, int64_t n, int64_t k) const;
  int64_t n_cut(int64_t n) const;
  int64_t k_cut(int64_t k, model::TensorType type) const;
  std::vector<int64_t> first_rows() const;
  std::vector<int64_t> some_rows() const;  // for what is measured at a few lengths
  int64_t many_rows() const;               // where arithmetic decides
  // What comes next ends at `until` of the whole, in about so many steps.
  void begin_part(double until, size_t steps);
  void step();

  const graph::Graph& graph_;
  const ModelWork& work_;
  device::Device& device_;
  const ProfilerOptions& options_;
  DeviceProfile& profile_;
  std::function<void(double)> step_;
  Stopwatch stopwatch_;
  std::vector<LayerRuns> layers_;  // while anything is measured
  double done_part_ = 0;
  double until_ = 0;
  double step_part_ = 0;
};

}  // namespace troika::profile
