// What has to be copied for a task when the device computes in memory of its own: inputs that
// others wrote, outputs that others read, keys and values.
#pragma once

#include "troika/device/device.h"
#include "troika/device/opencl/mirrors.h"

namespace troika::device::opencl {

// What a program reads and writes of tensors and cache that others see, found when it is compiled.
struct Crossings {
  std::vector<size_t> inputs;             // in Program::tensors, not written by the program itself
  std::vector<const graph::Op*> outputs;  // operators whose output others read
  std::vector<const graph::Op*> kv_reads;
  std::vector<const graph::Op*> kv_writes;
  bool sole_device = false;
};
Crossings find_crossings(const Program& program);

// Queues the copies. Nothing where memory is shared.
class TaskCopies {
 public:
  TaskCopies(Mirrors& mirrors, cl_command_queue queue, const Crossings& crossings,
             const Program& program, const Bindings& bindings)
      : mirrors_(mirrors),
        queue_(queue),
        crossings_(crossings),
        program_(program),
        bindings_(bindings),
        batch_(*bindings.batch) {}

  Status before();
  Status after();

 private:
  enum class Way { kUpload, kDownload };

  Status copy(const Rows& rows, Way way) {
    return way == Way::kUpload ? mirrors_.upload(rows) : mirrors_.download(rows);
  }
  Rows rows_of(size_t tensor, int64_t begin, int64_t count) const;
  // KV heads of an operator: all its own, or those that its query heads read.
  struct Heads {
    int64_t first = 0;
    int64_t count = 0;
  };
  static Heads kv_heads(const graph::Op& op);
  Status upload_kv(const graph::Op& op);
  Status download_kv(const graph::Op& op);
  Status repeat_copies(Mirrors::KvState& state);
  Status upload_missing(Mirrors::KvState& state);
  Status upload_blocks(int64_t begin, int64_t end);
  Status catch_up();

  Mirrors& mirrors_;
  cl_command_queue queue_;
  const Crossings& crossings_;
  const Program& program_;
  const Bindings& bindings_;
  const BatchView& batch_;
};

}  // namespace troika::device::opencl
