// Device: something that computes. The one interface between Troika and a processor, whatever its
// kind; outside its own folder a device is a name in the registry and a set of facts.
//
// Life of a piece of work: compile() once (slow), then submit() any number of times (asynchronous,
// in order), each giving a Fence; stats() tells afterwards when it ran.
//
// Threads: compile(), submit() and stats() are called from one control thread at a time. Errors
// come as Results or through the fence; no exception leaves a device's folder.
#pragma once

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
  // Rows for which kernels exist; empty: any number.
  std::vector<int64_t> standard_rows;
  int64_t n_tile = 1;           // outputs of a product are cut on multiples of this
  bool unified_memory = true;   // computes in the shared pool, without copies
  bool paged_attention = true;  // reads the KV cache through block tables
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
  std::byte* kv = nullptr;              // the KV cache, laid out by `kv_layout`
  KvLayout kv_layout;
};

// A piece of the graph that one task computes: operators in order. `tensors` lists everything that
// they read or write; bindings come in the same order.
struct Program {
  const graph::Graph* graph = nullptr;
  std::vector<graph::OpId> ops;
  std::vector<graph::TensorId> tensors;
  int64_t max_rows = 0;
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

struct TaskTimes {
  TimePoint queued{};
  TimePoint start{};  // on the clock given to the device when it was opened
  TimePoint end{};
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Whether the operator can run here at all.
  virtual bool supports(const graph::Graph& graph, graph::OpId op) const = 0;

  virtual Result<std::unique_ptr<Kernel>> compile(const Program& program) = 0;

  // Queues the kernel behind everything submitted before and behind `waits`. The bindings' arrays,
  // the kernel and the devices waited for must live until the fence is reached or this device is
  // closed. kDeviceFailed if the device is lost.
  virtual Result<Fence> submit(const Kernel& kernel, const Bindings& bindings,
                               std::span<const Fence> waits) = 0;

  // Times of a finished task; kept for the last 16384 tasks, more than one pass has.
  virtual TaskTimes times(const Fence& fence) const = 0;

  // Stops using a device that hangs or lies: nothing is submitted any more, waiting fences fail.
  // Any thread may call it. A fence that has failed is not proof that a device of another kind than
  // `cpu` has let go of its buffers.
  virtual void abandon(Error reason) = 0;
};

}  // namespace troika::device
