// Device: something that computes. The one interface between Troika and a processor, whatever its
// kind; outside its own folder a device is a name in the registry and a set of facts.
//
// Life of a piece of work: compile() once (slow), then submit() any number of times (asynchronous,
// in order), each giving a Fence; times() tells afterwards when it ran.
//
// Threads: compile(), submit(), times() and stats() are called from one control thread at a time.
// Errors come as Results or through the fence; no exception leaves a device's folder.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/fence.h"
#include "troika/device/kv_layout.h"
#include "troika/graph/graph.h"

namespace troika::device {

enum class DeviceKind { kCpu, kGpu, kNpu };
std::string_view to_string(DeviceKind kind);  // "cpu", "gpu", "npu"

// What planning and lowering must know of a device.
struct DeviceInfo {
  std::string name;  // as named by the user: "cpu@0"
  DeviceKind kind = DeviceKind::kCpu;
  std::string description;  // "AMD EPYC, 2 cores, avx2"
  std::vector<int> cores;   // cores of this machine that it is bound to; empty: none of them
  int threads = 0;          // threads of this machine that compute for it
  // Driver and library versions: what was learnt about the device holds as long as this is the
  // same.
  std::string version;
  // Rows for which kernels can be compiled, ascending; empty: any number. A task then has rows for
  // one of these and may use fewer; its tensors have room for all of them.
  std::vector<int64_t> standard_rows;
  int64_t n_tile = 1;   // outputs of a product are cut on multiples of this
  int64_t k_tile = 1;   // inputs of a product are cut on multiples of this
  bool exact = true;    // computes in FP32; false: inputs are rounded to FP16
  bool strided = true;  // takes rows that lie further apart than they are wide; false: copies them
  bool unified_memory = true;   // computes in the shared pool, without copies
  bool paged_attention = true;  // reads the KV cache through block tables
  bool int8_inputs = false;     // inputs of products are rounded to 8 bits, in blocks of 32
  int64_t capacity_bytes = 0;   // memory that it can hold; 0: all of the machine's
  std::vector<std::pair<std::string, std::string>> facts;  // further ones, for display
};

// One tensor's rows in shared memory. `row_stride` in bytes.
struct TensorView {
  std::byte* data = nullptr;
  int64_t row_stride = 0;
};

// Consecutive rows of a batch that belong to one sequence.
struct SequenceView {
  int64_t first_row = 0;
  int64_t n_rows = 0;
  int64_t first_position = 0;
  const int32_t* block_table = nullptr;  // covers first_position + n_rows tokens
};

// A ragged batch as devices see it; borrowed until the fence of the last task that uses it.
struct BatchView {
  int64_t n_rows = 0;
  std::span<const int32_t> tokens;     // [n_rows]
  std::span<const int32_t> positions;  // [n_rows]
  std::span<const SequenceView> sequences;
  std::span<const int32_t> logit_rows;  // rows whose logits are wanted, ascending
  int64_t first_logit_row = 0;          // kGatherRows writes them from this row of its output on
  std::byte* kv = nullptr;              // the KV cache, laid out by `kv_layout`
  KvLayout kv_layout;
  KvCopies kv_copies;

  // Of a tensor that has a row for each token, or for each row of wanted logits.
  int64_t row_count(graph::RowCount rows) const {
    return rows == graph::RowCount::kTokens ? n_rows : static_cast<int64_t>(logit_rows.size());
  }
};

// A piece of the graph that one task computes: operators in order. `tensors` lists everything that
// they read or write; bindings come in the same order. Of what they write only `outputs` is read by
// others: the rest need not be written at all.
struct Program {
  const graph::Graph* graph = nullptr;
  std::vector<graph::OpId> ops;
  std::vector<graph::TensorId> tensors;
  std::vector<graph::TensorId> outputs;
  int64_t max_rows = 0;  // one of DeviceInfo::standard_rows, if it has any
  // Of a product the input stays in place and the weight streams past it, on devices that can
  // choose.
  bool input_stationary = false;
  // No other device takes part in the passes that this belongs to, nor will: what a device with
  // memory of its own writes may stay there, but for the logits.
  bool sole_device = false;

  // Where a tensor stands in `tensors`; tensors.size() if it does not.
  size_t index_of(graph::TensorId tensor) const;
};

// A compiled Program. Belongs to the device that compiled it and must not outlive it.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

struct Bindings {
  std::span<const TensorView> tensors;  // in the order of Program::tensors
  const BatchView* batch = nullptr;
};

struct SubmitOptions {
  Duration delay{};      // a planned pause, from when the task's turn has come; waits come after it
  bool may_poll = true;  // false: waits block at once
  // Shared by the tasks of one pass: set by the device whose task fails, and from then on no task
  // of the pass is run. Lives as long as the bindings.
  std::atomic<bool>* spoiled = nullptr;
};

// On the clock given to the device when it was opened.
struct TaskTimes {
  TimePoint queued{};
  TimePoint start{};
  TimePoint end{};
  Duration wait{};   // for other devices' fences, directly before the start
  Duration delay{};  // as planned in SubmitOptions, directly before the wait
};

// Since the device was opened.
struct DeviceStats {
  int64_t tasks = 0;
  int64_t joins = 0;   // waits for another device's fence that was not reached yet
  Duration waited{};   // in joins
  Duration polled{};   // the part of it that was spent polling
  int64_t copies = 0;  // of tensors, to or from memory of the device's own
  int64_t copy_bytes = 0;
  Duration cpu{};         // that its own threads have spent on cores, polling included
  int64_t own_bytes = 0;  // memory that it holds outside the pool: packed weights, compiled graphs
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Whether the operator can run here at all.
  virtual bool supports(const graph::Graph& graph, graph::OpId op) const = 0;

  virtual Result<std::unique_ptr<Kernel>> compile(const Program& program) = 0;

  // Queues the kernel behind everything submitted before and behind `waits`. If what it waits for
  // fails, it is skipped: its fence is reached, so that nobody hangs, and its results mean nothing;
  // the failed fence and `spoiled` tell. The bindings' arrays, the kernel and the devices waited
  // for must live until the fence is reached or this device is closed. kDeviceFailed if the device
  // is lost.
  virtual Result<Fence> submit(const Kernel& kernel, const Bindings& bindings,
                               std::span<const Fence> waits, const SubmitOptions& options = {}) = 0;

  // Times of a finished task; kept for the last 16384 tasks, more than one pass has.
  virtual TaskTimes times(const Fence& fence) const = 0;
  virtual DeviceStats stats() const = 0;

  // Stops using a device that hangs or lies: nothing is submitted any more, waiting fences fail.
  // Waits a second at most for the running task. Any thread may call it.
  virtual void abandon(Error reason) = 0;
  // True once the device has failed or was abandoned: it accepts nothing any more.
  virtual bool lost() const = 0;
  // True if a task still ran when abandon() returned: it may write to its buffers at any time, so
  // they, the kernels and the device must be kept for ever (see quarantine.h).
  virtual bool stuck() const = 0;
};

}  // namespace troika::device
