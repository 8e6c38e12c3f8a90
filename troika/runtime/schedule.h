// The tasks of a plan for passes of certain rows, compiled on their devices and bound to memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/plan/lower.h"
#include "troika/runtime/executor.h"

namespace troika::runtime {

// What a task took lately while it computed: the mean of runs with the same number of rows, the
// newest of which count for a quarter. With other rows it starts anew.
class UsualTime {
 public:
  // Zero if nothing is known of so many rows.
  Duration of(int64_t rows) const { return rows == rows_ ? mean_ : Duration::zero(); }
  void add(int64_t rows, Duration took) {
    mean_ = of(rows) == Duration::zero() ? took : mean_ + (took - mean_) / 4;
    rows_ = rows;
  }

 private:
  int64_t rows_ = 0;
  Duration mean_{};
};

struct Schedule {
  size_t bucket = 0;  // of the plan
  plan::TaskList list;
  std::vector<std::unique_ptr<device::Kernel>> kernels;   // by task; empty until compile()
  std::vector<std::vector<device::TensorView>> bindings;  // by task
  const float* logits = nullptr;
  int64_t logits_stride = 0;        // floats
  std::vector<Duration> durations;  // by task: what it took lately, from queueing to its end
  std::vector<UsualTime> usual;     // by task
  std::vector<Duration> typical;    // by task, in passes of one row: about the median
  // By task, us, for these rows at about this depth; empty: nothing is predicted.
  std::vector<double> predicted_us;
  int64_t predicted_rows = 0;
  int64_t predicted_depth = -1;
  std::vector<WorkPart> parts;  // by task
  uint64_t last_used = 0;

  bool serves(size_t of_bucket, int64_t rows) const {
    return bucket == of_bucket && (list.any_rows ? rows <= list.rows : rows == list.rows);
  }
};

// Lowers one bucket. kUnsupported if a device cannot compute an operator.
Result<std::unique_ptr<Schedule>> make_schedule(
    const plan::Plan& plan, size_t bucket, const graph::Graph& graph, int64_t rows,
    int64_t max_logit_rows, std::span<const std::unique_ptr<device::Device>> devices);

// Compiles every task. On an error `failed` is the device's index.
Status compile(Schedule& schedule, std::span<const std::unique_ptr<device::Device>> devices,
               const std::function<bool()>& cancelled, size_t& failed);

// Points the tasks to their tensors in `memory`, which has list.memory.bytes.
void bind(Schedule& schedule, std::byte* memory);

}  // namespace troika::runtime
