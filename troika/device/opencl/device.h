// The `opencl` device itself, once its OpenCL device is chosen.
#pragma once

#include <deque>
#include <memory>
#include <set>

#include "troika/device/opencl/buildable.h"
#include "troika/device/opencl/device_clock.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/device/opencl/step_runner.h"
#include "troika/device/opencl/task_copies.h"
#include "troika/device/opencl/tuner.h"
#include "troika/device/work_queue.h"

namespace troika::device::opencl {

DeviceInfo describe(const OpenClOptions& options, const Session& session);

struct OpenClKernel final : Kernel {
  Program program;
  std::vector<Step> steps;
  Crossings crossings;
};

class OpenClDevice final : public QueuedDevice {
 public:
  OpenClDevice(DeviceInfo info, Session session, const std::string& cache_dir, const Clock& clock);
  ~OpenClDevice() override;

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override;
  Result<std::unique_ptr<Kernel>> compile(const Program& program) override;
  DeviceStats stats() const override;

 private:
  // A task in the driver's queue, and what its commands read until it is finished.
  struct Begun {
    EventHandle first;  // before its first command, if times are wanted
    EventHandle done;
    std::shared_ptr<const PackedBatch> batch;
    std::shared_ptr<const std::vector<float>> angles;
    std::vector<Landing::Copy> landing;
  };

  WorkQueue& queue() override { return queue_; }
  Result<std::unique_ptr<Kernel>> make_kernel(const Program& program);
  Status set_weights(Step& step);
  bool tiles_weights() const;
  Status tune_units(const Step& step, int64_t max_rows);
  Status warm_one(const Step& step, const KernelSet::OneProduct& product);
  // Has the kernels of a step compiled for one row and for the most.
  Status warm(const Step& step, int64_t max_rows);
  Status warm_rows(const Step& step);
  Status warm_kernel(const Result<cl_kernel>& kernel, int64_t local);
  Status begin(const OpenClKernel& kernel, const Bindings& bindings);
  Status put_rope_table(const Step& step, const OpenClKernel& kernel, const Bindings& bindings,
                        Begun& begun);
  Status finish(const OpenClKernel& kernel, const Bindings& bindings, TaskTimes& times);
  Status mark(EventHandle& event);
  Status wait_for_first();
  void tell_times(const Begun& begun, TaskTimes& times);
  void note_stats();

  const Clock& clock_;
  mutable DeviceInfo info_;  // supports() adds what the compiler refuses
  Session session_;
  Programs programs_;
  KernelSet kernels_;
  mutable Buildable buildable_;
  DeviceClock device_clock_;
  Tuner tuner_;
  Arena arena_;
  Weights weights_;
  Mirrors mirrors_;
  Scratch scratch_;
  BatchData batch_data_;
  std::deque<Begun> begun_;
  size_t known_done_ = 0;         // of the first of them
  std::set<cl_kernel> launched_;  // a processor's, by compile()
  std::atomic<int64_t> copies_{0};
  std::atomic<int64_t> copy_bytes_{0};
  std::atomic<int64_t> weight_bytes_{0};
  std::atomic<int64_t> mirror_bytes_{0};
  WorkQueue queue_;  // last: its worker uses all of the above
};

}  // namespace troika::device::opencl
