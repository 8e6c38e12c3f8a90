// Groups the operators of a cut pass into tasks and finds what each waits for, as plan::lower()
// does, on flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/device/device.h"
#include "troika/plan/rows.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/simulator.h"

namespace troika::sim {

// A stage of one block, or the head (block kHeadBlock), where it stands in the order of the pass.
struct CutInstance {
  int32_t block = 0;
  int32_t position = 0;
  const CutStage* stage = nullptr;
  int32_t shift = 0;     // added to the positions that its references name
  int32_t first_op = 0;  // set by PassGrouper: the number of its first operator in the pass
};

// A task as a range of operators in the order of the pass is not enough: devices alternate. So each
// operator names its task.
struct TaskGroup {
  int32_t device = 0;
  int32_t instance = 0;  // of its first operator
  int32_t block = 0;     // -1: wanted rows, or the whole pass
  bool input_stationary = false;
  int64_t max_rows = 0;
  double delay_us = 0;
  int32_t first_wait = 0;
  int32_t n_waits = 0;
};

class PassGrouper {
 public:
  // `positions` of a pass; the head is the last.
  PassGrouper(std::span<const device::DeviceInfo> infos, int32_t positions)
      : infos_(infos), positions_(positions) {}

  // kUnsupported if a device has no length for a task's rows. `blocks` are the pass's.
  Status run(std::vector<CutInstance>& instances, std::span<const plan::Block> blocks,
             int64_t logit_rows);

  const std::vector<TaskGroup>& tasks() const { return tasks_; }
  const std::vector<int32_t>& waits() const { return waits_; }
  int32_t task_of(int32_t op) const { return task_of_[static_cast<size_t>(op)]; }

 private:
  const CutInstance& instance_of(const CutInstance& from, const OpRef& ref) const;
  int32_t op_of(const CutInstance& from, const OpRef& ref) const {
    return instance_of(from, ref).first_op + ref.op;
  }
  template <class Visit>
  void each_kv_writer(const CutInstance& from, const CutOp& op, const Visit& visit) const;
  void find_crossing();
  void find_ends();
  Status group(const CutInstance& instance, size_t index);
  Status add(const CutInstance& instance, size_t index, int32_t op);
  bool joins(const CutInstance& instance, const CutOp& op, int32_t block, int64_t rows,
             int32_t task) const;
  bool known(int32_t other, const int32_t* clock) const;

  std::span<const device::DeviceInfo> infos_;
  int32_t positions_;
  std::span<const plan::Block> blocks_;
  int64_t logit_rows_ = 1;
  std::span<CutInstance> instances_;
  std::vector<int32_t> place_;    // by block and position, the head last: index of the instance
  std::vector<int32_t> device_;   // by operator
  std::vector<uint8_t> crosses_;  // by operator
  std::vector<uint8_t> ends_;     // by operator
  // What each operator reads of other devices: cross_deps_[first_cross_[op], first_cross_[op + 1]).
  std::vector<int32_t> cross_deps_;
  std::vector<int32_t> first_cross_;
  std::vector<int32_t> task_of_;  // by operator
  std::vector<TaskGroup> tasks_;
  std::vector<int32_t> waits_;
  std::vector<int32_t> last_op_;  // by task
  // Vector clocks, as in plan/task_order.h: by task and device, and what each device's next knows.
  std::vector<int32_t> clocks_;
  std::vector<int32_t> next_;
  std::vector<int32_t> number_;  // by task, on its device, from 1
  std::vector<int32_t> open_;    // by device
  std::vector<int32_t> found_;
};

}  // namespace troika::sim
