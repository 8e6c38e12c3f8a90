#include "troika/runtime/pass_account.h"

#include <algorithm>

#include "troika/plan/default_plan.h"

namespace troika::runtime {
namespace {

// Weight of the newest duration in the running mean is 1 / kDurationMemory.
constexpr int kDurationMemory = 4;
// A typical duration follows the newest by no more than this part of itself: one that another
// program has made ten times longer counts little, and is made good by the next.
constexpr int kTypicalRise = 8;
constexpr int kTypicalFall = 2;
// Wake-ups of a device that are kept: some hundred tokens' worth.
constexpr size_t kKeptWakeUps = 8192;

class Account {
 public:
  Account(Schedule& schedule, PassContext& context) : schedule_(schedule), context_(context) {}

  void add_all() {
    spans_.resize(context_.devices.size());
    if (context_.views.rows() == 1) ++context_.control.decode_passes;
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (context_.is_queued(i)) add(i);
    }
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (spans_[i].busy == Duration::zero()) continue;
      context_.work[i].busy += spans_[i].busy;
      context_.work[i].wait += spans_[i].last - spans_[i].first - spans_[i].busy;
    }
  }

 private:
  // Of one device in this pass.
  struct Span {
    TimePoint first = TimePoint::max();
    TimePoint last{};
    Duration busy{};
  };

  const std::vector<plan::Task>& tasks() const { return schedule_.list.tasks; }

  void add(size_t i) {
    const plan::Task& task = tasks()[i];
    const auto index = static_cast<size_t>(task.device);
    const device::TaskTimes times = context_.devices[index]->times(context_.fences[i]);
    const Duration busy = times.end - times.start;
    Duration& usual = schedule_.durations[i];
    const bool is_first = usual == Duration::zero();
    const Duration took = times.end - times.queued;
    usual = usual == Duration::zero() ? took : usual + (took - usual) / kDurationMemory;
    context_.paces[index].seconds += to_seconds(busy);
    context_.paces[index].macs += static_cast<double>(context_.macs_of(task));
    add_work(i, times, is_first);
    Span& span = spans_[index];
    span.busy += busy;
    span.first = std::min(span.first, times.start);
    span.last = std::max(span.last, times.end);
    context_.control.gather_bytes +=
        task.join_bytes_per_row * context_.views.block(task.block).n_rows;
    if (context_.options.trace) record(i, times);
    schedule_.usual[i].add(context_.rows_of(task), busy);
  }

  // What shares follow from leaves out first times, in which memory is touched and kernels are
  // prepared.
  void add_work(size_t i, const device::TaskTimes& times, bool is_first) {
    const plan::Task& task = tasks()[i];
    DeviceWork& work = context_.work[static_cast<size_t>(task.device)];
    const PartWork did{context_.macs_of(task), times.end - times.start};
    work.macs += did.macs;
    ++work.tasks;
    if (times.wait > Duration::zero()) count_join(task, times, work);
    const int64_t pass_rows = context_.views.rows();
    if (pass_rows == 1 && !is_first) {
      const PartWork undisturbed{did.macs, typical(i, did.busy)};
      work.decode[static_cast<size_t>(schedule_.parts[i])].add(undisturbed);
    }
    // Schedules of many rows are as many as prompts are long: the first of all is left out.
    if (pass_rows > plan::kManyRows && context_.passes > 0) work.prefill.add(did);
    if (schedule_.predicted_us.empty()) return;
    work.predicted += std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(schedule_.predicted_us[i]));
    work.predicted_busy += did.busy;
  }

  Duration typical(size_t task, Duration took) {
    Duration& typical = schedule_.typical[task];
    const Duration step =
        std::clamp(took - typical, -typical / kTypicalFall, typical / kTypicalRise);
    typical = typical == Duration::zero() ? took : typical + step;
    return typical;
  }

  void count_join(const plan::Task& task, const device::TaskTimes& times, DeviceWork& work) const {
    ++work.joins;
    work.join_wait += times.wait;
    TimePoint awaited{};
    for (const int32_t other : task.waits) {
      const device::Fence& fence = context_.fences[static_cast<size_t>(other)];
      if (fence.timeline == nullptr) continue;
      const auto device = static_cast<size_t>(tasks()[static_cast<size_t>(other)].device);
      awaited = std::max(awaited, context_.devices[device]->times(fence).end);
    }
    if (work.wake_ups.size() < kKeptWakeUps) work.wake_ups.push_back(times.start - awaited);
  }

  void record(size_t index, const device::TaskTimes& times) {
    const plan::Task& task = tasks()[index];
    const auto& blocks = schedule_.list.cut->blocks;
    TraceEvent event;
    event.name = task.name;
    event.stage = to_string(task.stage);
    event.device = context_.devices[static_cast<size_t>(task.device)]->info().name;
    event.pass = context_.passes;
    event.layer = task.layer;
    event.sequences = static_cast<int32_t>(context_.views.whole().sequences.size());
    event.rows = context_.rows_of(task);
    event.predicted_us = schedule_.predicted_us.empty()
                             ? to_us(schedule_.usual[index].of(event.rows))
                             : schedule_.predicted_us[index];
    if (task.block != plan::kWholePass) {
      event.chunk = blocks[static_cast<size_t>(task.block)].chunk;
      event.row_begin = blocks[static_cast<size_t>(task.block)].begin;
    }
    event.bytes = task.weight_bytes + task.activation_bytes_per_row * event.rows;
    event.copy_bytes = task.join_bytes_per_row * event.rows;
    event.macs = context_.macs_of(task);
    event.queued = times.queued;
    event.start = times.start;
    event.end = times.end;
    event.wait = times.wait;
    event.delay = times.delay;
    context_.trace.events.push_back(std::move(event));
  }

  Schedule& schedule_;
  PassContext& context_;
  std::vector<Span> spans_;  // by device
};

}  // namespace

void account(Schedule& schedule, PassContext& context) { Account(schedule, context).add_all(); }

}  // namespace troika::runtime
