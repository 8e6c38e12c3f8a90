// Groups the operators of a cut pass into tasks and finds what each waits for, as plan::lower()
// does, on flat arrays. Layers that come out alike are grouped a few times and then copied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/device/device.h"
#include "troika/plan/rows.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/simulator.h"

namespace troika::sim {

// A position of one block, or the head (block kHeadBlock), where it stands in the order of the
// pass.
struct CutInstance {
  int32_t block = 0;
  int32_t position = 0;
  int32_t step = 0;  // of the pass: a stage of a chunk, of whose blocks the positions take turns
  const CutStage* stage = nullptr;
  int32_t shift = 0;     // added to the positions that its references name
  int32_t first_op = 0;  // set by PassGrouper: the number of its first operator in the pass
  bool copied = false;   // the same: its tasks are copies
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
  int32_t original = 0;  // the task that it is a copy of, a number of layers later; itself if none
};

class PassGrouper {
 public:
  // Positions of a pass, the last of which is the head, and of each layer.
  PassGrouper(std::span<const device::DeviceInfo> infos, int32_t positions,
              int32_t positions_of_layer)
      : infos_(infos),
        n_devices_(infos.size()),
        positions_(positions),
        layer_(positions_of_layer) {}

  // kUnsupported if a device has no length for a task's rows. `blocks` are the pass's.
  Status run(std::vector<CutInstance>& instances, std::span<const plan::Block> blocks,
             int64_t logit_rows);

  const std::vector<TaskGroup>& tasks() const { return tasks_; }
  const std::vector<int32_t>& waits() const { return waits_; }
  int32_t task_of(int32_t op) const { return task_of_[static_cast<size_t>(op)]; }

 private:
  // What was known before an instance.
  struct Mark {
    int32_t tasks = 0;
    int32_t waits = 0;
  };

  int32_t place(int32_t block, int32_t position) const {
    return place_[static_cast<size_t>(block) * static_cast<size_t>(positions_) +
                  static_cast<size_t>(position)];
  }
  int32_t place(const CutInstance& from, const OpRef& ref) const;
  template <class Visit>
  void each_kv_writer(const CutInstance& from, const CutOp& op, const Visit& visit) const;
  template <class Visit>
  void each_cross(const CutInstance& from, const CutOp& op, const Visit& visit) const;

  void lay_out();
  void find_crossing();
  size_t step_end(size_t first) const;
  void find_ends(size_t first, size_t end);
  Status group(const CutInstance& instance, int32_t index);
  Status add(const CutInstance& instance, int32_t index, int32_t op);
  int32_t open_task(int32_t index, const CutOp& op, int32_t block);
  bool joins(int32_t step, const CutOp& op, int32_t block, int64_t rows, int32_t task) const;
  bool known(int32_t other, const int32_t* clock) const;

  // Copies: see pass_repeats.cpp.
  void find_periods();
  void mark(size_t index);
  int32_t next_at(size_t index, size_t device, size_t other) const {
    return marked_next_[(index * n_devices_ + device) * n_devices_ + other];
  }
  size_t repeats(size_t index) const;
  bool same_tasks(size_t index, int32_t period) const;
  bool same_state(size_t index, int32_t period) const;
  int32_t last_like(int32_t index, int32_t layers) const;
  bool far_ones_known(size_t index, int32_t period, int32_t count) const;
  void copy(size_t index, int32_t period, int32_t count);
  int32_t made(size_t index, int32_t period, size_t device) const;

  std::span<const device::DeviceInfo> infos_;
  size_t n_devices_;
  int32_t positions_;
  int32_t layer_;  // positions of one
  std::span<const plan::Block> blocks_;
  int64_t logit_rows_ = 1;
  std::span<CutInstance> instances_;
  std::vector<int32_t> place_;    // by block and position: index of the instance
  std::vector<uint8_t> crosses_;  // by operator
  std::vector<uint8_t> ends_;     // by operator
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
  // Of find_ends(), by device.
  std::vector<uint8_t> later_;
  std::vector<int32_t> later_block_;

  // By instance: so many instances before it stands the same one of the layer before; 0: none. And
  // how many instances up to it have the same such number.
  std::vector<int32_t> period_;
  std::vector<int32_t> run_;
  std::vector<Mark> marks_;
  std::vector<int32_t> marked_next_;
  std::vector<int32_t> marked_open_;
  std::vector<int32_t> made_;  // of copy(), by device
};

}  // namespace troika::sim
