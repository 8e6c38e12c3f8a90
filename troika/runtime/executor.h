// Executor: runs the tasks of a plan on devices, one forward pass at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/device/device.h"
#include "troika/device/memory.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/runtime/batch.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {

// How one device's task comes to wait for another's.
enum class Sync {
  kBlocking,  // the caller blocks on the fence before it queues the task
  kPredict,   // the caller sleeps for most of the predicted time, polls, and then queues the task
  kQueue,     // everything is queued ahead; the waiting device sleeps and polls by prediction
};
std::string_view to_string(Sync sync);  // "blocking", "predict", "queue"

struct ExecutorOptions {
  int64_t max_logit_rows = 1;  // rows of one pass that may ask for logits, at least 1
  int64_t max_rows = 0;        // rows of a pass, if fewer than the plan knows; 0: those
  bool trace = false;          // keep every task's times
  Sync sync = Sync::kQueue;
  // A pass in which nothing is finished for this long has a device that hangs; it is longer the
  // longer the running task should take at the slowest, and on a device that has been slow.
  Duration patience = std::chrono::seconds(10);
  // Asked before each compilation, for there may be many long ones, and now and then in a pass;
  // true: kCancelled. In a pass the tasks that run are waited for, and those behind them skipped; a
  // device hangs then if a task takes four times as long as it should by what the device has shown.
  std::function<bool()> cancelled = nullptr;
  // What a plan's cost model says of the tasks of a pass, us by task: asked once for each bucket,
  // rows and, roughly, tokens before them. Empty, or another number of tasks: nothing is predicted.
  std::function<std::vector<double>(const plan::RowsBucket&, int64_t rows, int64_t depth)> predict =
      nullptr;
};

// What lies between two joins of a layer that is cut in pairs, and the head.
enum class WorkPart { kAttention, kMlp, kHead, kOther };
inline constexpr size_t kWorkParts = 4;

struct PartWork {
  int64_t macs = 0;
  Duration busy{};

  void add(const PartWork& other) {
    macs += other.macs;
    busy += other.busy;
  }
};

// What one device did since the last reset.
struct DeviceWork {
  int64_t macs = 0;
  Duration busy{};
  Duration wait{};       // between its first and last task of a pass, when it computed nothing
  int64_t joins = 0;     // tasks that had to wait for another device
  Duration join_wait{};  // how long
  // Of the first some thousand joins: from the end of what was waited for to the start.
  std::vector<Duration> wake_ups;
  int64_t tasks = 0;
  // What shares follow from (plan/default_plan.h): passes of one row, by WorkPart and as tasks take
  // typically, and passes of many.
  std::array<PartWork, kWorkParts> decode{};
  PartWork prefill{};
  // Of the tasks for which something was predicted.
  Duration predicted{};
  Duration predicted_busy{};  // what they took
};

// What the calling thread did since the last reset, in time on a core.
struct ControlWork {
  int64_t passes = 0;
  int64_t decode_passes = 0;  // of one row
  Duration submit{};          // checks, block tables, queueing
  Duration wait{};            // for devices: between submissions, and until the pass was done
  int64_t gather_bytes = 0;   // moved by concatenations that exist only because of cuts
};

struct LostDevice {
  size_t index = 0;  // in the plan's order
  Error reason;
};

// Threads: one caller at a time. Borrows graph, devices, pool and cache, which must outlive it.
class Executor {
 public:
  // Checks the plan, lowers it for the largest pass of each bucket, and allocates the activations.
  // What any number of rows can use is compiled at once, the rest when first needed. `devices` are
  // those that the plan names, in its order.
  static Result<std::unique_ptr<Executor>> create(
      const graph::Graph& graph, const plan::Plan& plan,
      std::span<const std::unique_ptr<device::Device>> devices, device::SharedPool& pool,
      KvCache& cache, const ExecutorOptions& options);
  // If a device is stuck, what it may still write to is put in quarantine.
  ~Executor();

  // Lowers and compiles for passes of `rows` rows, so that forward() need not.
  Status prepare(int64_t rows);

  // Computes every item's tokens after what its sequence holds already. Their KV is committed only
  // when the whole pass has succeeded; after an error the sequences and the cache's free blocks are
  // as before.
  // kInvalidArgument for a batch that cannot be meant (an empty or repeated item, an unknown
  // token), kContextFull, kDeviceFailed (then lost_devices() says which; the executor is of no use
  // any more), or kInvalidData if logits are not finite.
  Result<Logits> forward(const Batch& batch);

  // Devices that failed, hung or refused in the last pass or at compiling.
  const std::vector<LostDevice>& lost_devices() const;

  int64_t max_rows() const;
  // The least work of a pass of one sequence with one row of logits.
  Work work(int64_t rows, int64_t depth) const;

  std::span<const DeviceWork> device_work() const;  // in the plan's order of devices
  const ControlWork& control_work() const;
  void reset_work();
  // What `predict` told is asked for anew.
  void forget_predictions();
  const Trace& trace() const;

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troika::runtime
