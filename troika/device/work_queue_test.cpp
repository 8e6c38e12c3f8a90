#include "troika/device/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "troika/base/cores.h"

namespace troika::device {
namespace {

using ::testing::ElementsAre;

struct NumberedKernel final : Kernel {
  explicit NumberedKernel(int the_number) : number(the_number) {}
  int number;
};

int number_of(const Kernel& kernel) { return static_cast<const NumberedKernel&>(kernel).number; }

// A device whose driver has a queue: tasks are begun ahead, and finished when told to.
class BegunAhead : public ::testing::Test {
 protected:
  BegunAhead()
      : queue_(
            "driver", {}, system_clock(),
            [this](const Kernel& kernel, const Bindings&) {
              const std::lock_guard lock(mutex_);
              begun_.push_back(number_of(kernel));
              changed_.notify_all();
              return Status{};
            },
            [this](const Kernel& kernel, const Bindings&, TaskTimes&) -> Status {
              allowed_.wait();
              const std::lock_guard lock(mutex_);
              finished_.push_back(number_of(kernel));
              if (number_of(kernel) == fails_) {
                return make_error(ErrorCode::kDeviceFailed, "task {} broke", fails_);
              }
              return {};
            }) {}

  Result<Fence> submit(const Kernel& kernel, std::span<const Fence> waits = {}) {
    SubmitOptions options;
    options.spoiled = &spoiled_;
    return queue_.submit(kernel, {}, waits, options);
  }

  void wait_for_begun(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
  }

  std::vector<int> finished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }

  std::promise<void> allow_;
  std::shared_future<void> allowed_ = allow_.get_future().share();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> begun_;
  std::vector<int> finished_;
  int fails_ = -1;
  std::atomic<bool> spoiled_{false};
  NumberedKernel one_{1};
  NumberedKernel two_{2};
  NumberedKernel three_{3};
  WorkQueue queue_;  // last: its worker uses the others
};

TEST_F(BegunAhead, FencesAreReachedWhenTasksAreFinishedAndInOrder) {
  const auto first = submit(one_);
  const auto second = submit(two_);
  const auto third = submit(three_);
  wait_for_begun(1);
  EXPECT_FALSE(first->reached());
  allow_.set_value();
  ASSERT_TRUE(third->wait().has_value());
  EXPECT_TRUE(first->reached());
  EXPECT_THAT(begun_, ElementsAre(1, 2, 3));
  EXPECT_THAT(finished(), ElementsAre(1, 2, 3));
  EXPECT_EQ(queue_.stats().tasks, 3);
  EXPECT_GE(queue_.times(*second).start, queue_.times(*first).end);
}

TEST_F(BegunAhead, WhatWaitsForOthersDoesNotHoldUpWhatIsBegun) {
  allow_.set_value();
  Timeline other;
  const Fence wait{&other, 1};
  const auto first = submit(one_);
  const auto second = submit(two_, {&wait, 1});
  ASSERT_TRUE(first->wait().has_value());
  EXPECT_FALSE(second->reached());
  other.signal(1);
  ASSERT_TRUE(second->wait().has_value());
  EXPECT_THAT(finished(), ElementsAre(1, 2));
}

TEST_F(BegunAhead, AFailureFinishesWhatIsBegunAndFailsItsFences) {
  fails_ = 1;
  const auto first = submit(one_);
  const auto second = submit(two_);
  wait_for_begun(1);
  allow_.set_value();
  const Status done = first->wait();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "task 1 broke");
  EXPECT_FALSE(second->wait().has_value());
  EXPECT_TRUE(spoiled_);
  EXPECT_TRUE(queue_.lost());
  // Who comes too late is told the same.
  EXPECT_EQ(submit(three_).error().message, "task 1 broke");
  EXPECT_EQ(queue_.drain().error().message, "task 1 broke");
  queue_.abandon({ErrorCode::kDeviceFailed, "given up"});
  EXPECT_EQ(submit(three_).error().message, "task 1 broke");
}

// A device with something to do for a task before it runs.
class Preparing : public ::testing::Test {
 protected:
  Preparing()
      : queue_(
            "queue", {}, system_clock(),
            [this](const Kernel&, const Bindings&) {
              before_run_ = prepared_;
              return Status{};
            },
            nullptr,
            [this](const Kernel& kernel, int64_t calls) {
              EXPECT_EQ(number_of(kernel), 1);
              EXPECT_EQ(calls, prepared_);
              ++prepared_;
              if (prepared_ == signals_after_) other_.signal(1);
              return prepared_ < pieces_;
            }) {}

  // A task that waits for the other device.
  Result<Fence> submit(const Kernel& kernel, const SubmitOptions& options = {}) {
    return queue_.submit(kernel, {}, {&awaited_, 1}, options);
  }

  int64_t pieces_ = 3;
  int64_t signals_after_ = -1;
  std::atomic<int64_t> prepared_{0};
  int64_t before_run_ = 0;
  Timeline other_;
  const Fence awaited_{&other_, 1};
  const NumberedKernel one_{1};
  const NumberedKernel two_{2};
  WorkQueue queue_;  // last: its worker uses all of the above
};

TEST_F(Preparing, HappensWhileATaskWaits) {
  const auto first = submit(one_);
  ASSERT_TRUE(first.has_value());
  while (prepared_ < 3) std::this_thread::yield();
  other_.signal(1);
  ASSERT_TRUE(first->wait().has_value());
  EXPECT_EQ(before_run_, 3);
  // What need not wait is not held up.
  const auto second = submit(two_);
  ASSERT_TRUE(second->wait().has_value());
  EXPECT_EQ(prepared_, 3);
}

TEST_F(Preparing, DoesNotHappenWhereAWaitMayNotPoll) {
  SubmitOptions options;
  options.may_poll = false;
  const auto fence = submit(one_, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  other_.signal(1);
  ASSERT_TRUE(fence->wait().has_value());
  EXPECT_EQ(prepared_, 0);
}

// A driver with much to prepare does not start late.
TEST_F(Preparing, StopsWhenTheWaitIsOver) {
  pieces_ = INT64_MAX;
  signals_after_ = 2;
  const auto fence = submit(one_);
  ASSERT_TRUE(fence->wait().has_value());
  EXPECT_EQ(prepared_, 2);
}

struct Count final : Kernel {
  int* counter = nullptr;
};

Status count(const Kernel& kernel, const Bindings&) {
  ++*static_cast<const Count&>(kernel).counter;
  return {};
}

// Many workers that poll for each other on one core: whoever can go on gets the core.
TEST(WorkQueue, MoreWorkersThanCoresDoNotLockUp) {
  constexpr int kQueues = 8;
  constexpr int kRounds = 200;
  const std::vector<int> cores = allowed_cores();
  ASSERT_FALSE(cores.empty());
  std::vector<std::unique_ptr<WorkQueue>> queues;
  for (int i = 0; i < kQueues; ++i) {
    queues.push_back(std::make_unique<WorkQueue>("queue", std::vector<int>{cores.front()},
                                                 system_clock(), count));
  }
  // Not atomic: each task waits for the one before it, on another queue.
  int counter = 0;
  std::vector<Count> kernels(kQueues);
  for (Count& kernel : kernels) kernel.counter = &counter;
  Fence last;
  for (int i = 0; i < kRounds * kQueues; ++i) {
    const auto queue = static_cast<size_t>(i % kQueues);
    const auto fence = queues[queue]->submit(kernels[queue], {}, {&last, 1}, {});
    ASSERT_TRUE(fence.has_value());
    last = *fence;
  }
  ASSERT_TRUE(last.wait().has_value());
  EXPECT_EQ(counter, kRounds * kQueues);
  for (const auto& queue : queues) EXPECT_EQ(queue->stats().tasks, kRounds);
}

}  // namespace
}  // namespace troika::device
