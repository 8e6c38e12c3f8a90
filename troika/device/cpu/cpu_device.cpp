#include "troika/device/cpu/cpu_device.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "troika/base/cores.h"
#include "troika/base/cpu_name.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/step.h"
#include "troika/device/cpu/team.h"

namespace troika::device::cpu {
namespace {

// Tasks whose times are kept; a power of two.
constexpr uint64_t kKeptTimes = 16384;
// More than any machine has cores: a bound on what is asked of the system.
constexpr int kMaxThreads = 4096;
// How often a worker that waits for another device looks whether its own is being closed.
constexpr Duration kWaitSlice = std::chrono::milliseconds(20);
constexpr size_t kScratchAlignment = 64;

struct CpuKernel final : Kernel {
  const graph::Graph* graph = nullptr;
  std::vector<Step> steps;
};

struct QueuedTask {
  const CpuKernel* kernel = nullptr;
  Bindings bindings;
  std::vector<Fence> waits;
  uint64_t value = 0;
};

class AlignedFloats {
 public:
  // Grows to `count` floats; what was there is lost.
  void reserve(int64_t count) {
    if (count <= size_) return;
    storage_.resize(static_cast<size_t>(count) + kScratchAlignment / sizeof(float));
    size_ = count;
  }
  float* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    const uintptr_t aligned =
        (address + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    return storage_.data() + (aligned - address) / sizeof(float);
  }

 private:
  std::vector<float> storage_;
  int64_t size_ = 0;
};

// One worker thread takes tasks from an in-order queue and runs them as member 0 of the team.
class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceInfo info, const KernelTable& kernels, std::vector<int> cores, int threads,
            const Clock& clock)
      : info_(std::move(info)),
        kernels_(kernels),
        clock_(clock),
        timeline_(clock),
        team_(threads, cores),
        scratch_(static_cast<size_t>(threads)),
        times_(kKeptTimes),
        worker_([this, cores] { work(cores); }) {}

  ~CpuDevice() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_one();
    worker_.join();
  }

  const DeviceInfo& info() const override { return info_; }

  bool supports(const graph::Graph&, graph::OpId) const override { return true; }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    if (is_closing()) return out_of_use();
    auto kernel = std::make_unique<CpuKernel>();
    kernel->graph = program.graph;
    kernel->steps = make_steps(program);
    const int64_t floats = scratch_floats(kernel->steps, program, kernels_);
    drain();  // scratch may move
    for (AlignedFloats& scratch : scratch_) scratch.reserve(floats);
    return kernel;
  }

  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings,
                       std::span<const Fence> waits) override {
    Fence fence{&timeline_, 0};
    QueuedTask task;
    task.kernel = static_cast<const CpuKernel*>(&kernel);
    task.bindings = bindings;
    task.waits.assign(waits.begin(), waits.end());
    {
      const std::lock_guard lock(mutex_);
      if (abandoned_) return out_of_use();
      task.value = ++last_value_;
      fence.value = task.value;
      times_[task.value % kKeptTimes].queued = clock_.now();
      queue_.push_back(std::move(task));
    }
    arrived_.notify_one();
    return fence;
  }

  TaskTimes times(const Fence& fence) const override { return times_[fence.value % kKeptTimes]; }

  // Lets the running task end first: once a fence has failed, nothing here touches its buffers.
  void abandon(Error reason) override {
    {
      std::unique_lock lock(mutex_);
      abandoned_ = true;
      queue_.clear();
      idle_.wait(lock, [this] { return !running_; });
    }
    timeline_.fail(std::move(reason));
  }

 private:
  tl::unexpected<Error> out_of_use() const {
    return make_error(ErrorCode::kDeviceFailed, "device {} is out of use", info_.name);
  }

  bool is_closing() {
    const std::lock_guard lock(mutex_);
    return stopping_ || abandoned_;
  }

  void drain() {
    uint64_t last = 0;
    {
      const std::lock_guard lock(mutex_);
      last = last_value_;
    }
    static_cast<void>(timeline_.wait(last));
  }

  // In slices: a fence that is never reached must not keep this device from being closed.
  Status wait_for(const std::vector<Fence>& fences) {
    WaitPolicy slice;
    slice.timeout = kWaitSlice;
    for (const Fence& fence : fences) {
      Status done = fence.wait(slice);
      while (!done && done.error().code == ErrorCode::kTimeout && !fence.timeline->failed()) {
        if (is_closing()) return out_of_use();
        done = fence.wait(slice);
      }
      RETURN_IF_ERROR(done);
    }
    return {};
  }

  // What was queued behind a task that cannot run cannot run either.
  void give_up(const Error& reason) {
    bool closing = false;
    {
      const std::lock_guard lock(mutex_);
      closing = stopping_ || abandoned_;
      abandoned_ = true;
      queue_.clear();
    }
    if (!closing) timeline_.fail(reason);
  }

  void work(const std::vector<int>& cores) {
    if (!cores.empty()) static_cast<void>(pin_this_thread({cores.data(), 1}));
    while (true) {
      QueuedTask task;
      {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        task = std::move(queue_.front());
        queue_.pop_front();
        running_ = true;
      }
      if (const Status ready = wait_for(task.waits); ready) {
        run(task);
      } else {
        give_up(ready.error());
      }
      const std::lock_guard lock(mutex_);
      running_ = false;
      idle_.notify_all();
    }
  }

  void run(const QueuedTask& task) {
    TaskTimes& times = times_[task.value % kKeptTimes];
    times.start = clock_.now();
    StepContext shared;
    shared.graph = task.kernel->graph;
    shared.bindings = &task.bindings;
    shared.kernels = &kernels_;
    shared.threads = team_.size();
    const std::vector<Step>& steps = task.kernel->steps;
    chunks_.clear();
    for (const Step& step : steps) chunks_.push_back(chunk_count(step, shared));
    team_.run(chunks_, [&](int member, int step, int64_t chunk) {
      StepContext context = shared;
      context.scratch = scratch_[static_cast<size_t>(member)].data();
      run_chunk(steps[static_cast<size_t>(step)], context, chunk);
    });
    times.end = clock_.now();
    timeline_.signal(task.value);
  }

  const DeviceInfo info_;
  const KernelTable& kernels_;
  const Clock& clock_;
  Timeline timeline_;
  Team team_;
  std::vector<AlignedFloats> scratch_;  // one per thread
  std::vector<int64_t> chunks_;         // of the running task's steps
  std::vector<TaskTimes> times_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable idle_;
  std::deque<QueuedTask> queue_;
  uint64_t last_value_ = 0;
  bool running_ = false;  // the worker holds a task
  bool stopping_ = false;
  bool abandoned_ = false;
  std::thread worker_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Device>> open(const CpuOptions& options, const Clock& clock) {
  const std::span<const KernelTable* const> available = available_kernels();
  const KernelTable* kernels = available.front();
  if (!options.kernels.empty()) {
    kernels = find_kernels(options.kernels);
    if (kernels == nullptr) {
      std::string names;
      for (const KernelTable* table : available) {
        names += (names.empty() ? "" : ", ") + std::string(table->name);
      }
      return make_error(ErrorCode::kUnsupported, "no kernels \"{}\" on this machine: it has {}",
                        options.kernels, names);
    }
  }
  const int threads =
      options.cores.empty() ? options.threads : static_cast<int>(options.cores.size());
  if (threads < 1 || threads > kMaxThreads) {
    return make_error(ErrorCode::kInvalidArgument, "device {}: {} threads; use 1 to {}",
                      options.name, threads, kMaxThreads);
  }
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kCpu;
  info.description = fmt::format("{}, {} thread{}, {} kernels", cpu_name(), threads,
                                 threads == 1 ? "" : "s", kernels->name);
  info.cores = options.cores;
  info.threads = threads;
  info.n_tile = 16;
  info.facts = {{"threads", std::to_string(threads)}, {"kernels", std::string(kernels->name)}};
  try {
    return std::unique_ptr<Device>(
        std::make_unique<CpuDevice>(std::move(info), *kernels, options.cores, threads, clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: {} threads cannot be started: {}",
                      options.name, threads, error.code().message());
  }
}

}  // namespace troika::device::cpu
