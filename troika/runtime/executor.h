// Executor: runs the tasks of a plan on devices, one forward pass at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/device/device.h"
#include "troika/device/memory.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/runtime/batch.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {

struct ExecutorOptions {
  int64_t max_logit_rows = 1;  // rows of one pass that may ask for logits, at least 1
  bool trace = false;          // keep every task's times
};

// What one device did since the last reset.
struct DeviceWork {
  int64_t macs = 0;
  Duration busy{};
  Duration wait{};  // between its first and last task of a pass, when it computed nothing
};

// Threads: one caller at a time. Borrows graph, devices, pool and cache, which must outlive it.
class Executor {
 public:
  // Checks and lowers the plan, compiles every task, and allocates the activations. `devices` are
  // those that the plan names, in its order.
  static Result<std::unique_ptr<Executor>> create(
      const graph::Graph& graph, const plan::Plan& plan,
      std::span<const std::unique_ptr<device::Device>> devices, device::SharedPool& pool,
      KvCache& cache, const ExecutorOptions& options);
  ~Executor();

  // Computes every item's tokens after what its sequence holds already. Their KV is committed only
  // when the whole pass has succeeded; after an error the sequences and the cache's free blocks are
  // as before.
  // kInvalidArgument for a batch that cannot be meant (an empty or repeated item, an unknown
  // token), kContextFull, kDeviceFailed, or kInvalidData if logits are not finite.
  Result<Logits> forward(const Batch& batch);

  int64_t max_rows() const;
  // The least work of a pass of one sequence with one row of logits.
  Work work(int64_t rows, int64_t depth) const;

  std::span<const DeviceWork> device_work() const;  // in the plan's order of devices
  void reset_device_work();
  const Trace& trace() const;

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troika::runtime
