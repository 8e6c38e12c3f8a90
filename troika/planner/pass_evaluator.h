// Simulates one bucket after another of the same pass: what a search asks thousands of times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/planner/pass_space.h"
#include "troika/sim/pass_schedule.h"
#include "troika/sim/simulator.h"

namespace troika::planner {

// Borrows the space. Not shared between threads.
class PassEvaluator {
 public:
  explicit PassEvaluator(const PassSpace& space);

  // By the request's objective, without what building graphs takes; HUGE_VAL for a bucket that
  // cannot be.
  // Buckets that plan::check() refuses may be asked about, too, but for orders by a list.
  double score(const plan::RowsBucket& bucket);
  // So many buckets were asked about, and so many may be.
  int64_t evaluations() const { return evaluations_; }
  bool may_go_on() const { return evaluations_ < space_.request().budget.evaluations; }

  // Of the last bucket that could be: its time as plans are compared by it, and its energy.
  double us() const { return us_; }
  double mj() const { return mj_; }
  // And without noise. Of the bucket that was scored last, if it could be.
  const sim::PassSchedule& schedule() const {
    scheduler_.add_places(schedule_);
    return schedule_;
  }
  std::span<const sim::TaskTimes> times() const { return simulator_.times(); }
  std::span<const double> busy_us() const { return simulator_.busy_us(); }

 private:
  const PassSpace& space_;
  cost::ChipFacts chip_;
  sim::PassScheduler scheduler_;
  mutable sim::PassSchedule schedule_;  // gets its places when it is asked for
  sim::Simulator simulator_;
  sim::Simulator noisy_;
  std::vector<double> varied_;
  double us_ = 0;
  double mj_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace troika::planner
