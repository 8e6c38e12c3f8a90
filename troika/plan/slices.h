// The slices that an activation consists of while a graph is being cut: which device wrote which
// columns, and how another device gets the columns that it needs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/cut_graph.h"
#include "troika/plan/shares.h"

namespace troika::plan {

// Columns of one tensor of the uncut graph, for one block of rows, in a tensor of the cut graph.
struct Slice {
  int32_t device = 0;  // that wrote it
  Range columns;
  graph::TensorId tensor = -1;
  bool partial = false;   // one of the sums that make the value, all columns
  bool own_copy = false;  // computed by the device for itself; others have theirs
  bool shared() const { return !partial && !own_copy; }
};

// What one device writes.
struct SliceSpec {
  int32_t device = 0;
  Range columns;
};

// Grows the cut graph. Borrows all that it is given.
class Slices {
 public:
  Slices(const graph::Graph& source, std::span<const device::DeviceInfo> infos,
         int64_t max_logit_rows, CutGraph& out);

  // What there is of a value in a block's rows. Where chunks join, it may have been computed in
  // other blocks of the same rows: then it is brought here first.
  const std::vector<Slice>& of(graph::TensorId source, int32_t block);
  // Whole or sliced values that all may read, in order of columns.
  std::vector<SliceSpec> shared(graph::TensorId source, int32_t block);
  bool has_partial_sums(graph::TensorId source, int32_t block);
  // A complete value that `device` need not compute.
  bool at_hand(graph::TensorId source, int32_t block, int32_t device);

  // Tensors for `specs` to write. Where every device can (any stride, or a single row) they are
  // windows of one tensor, so that nobody has to join them.
  std::vector<graph::TensorId> outputs(graph::TensorId source, int32_t block,
                                       const std::vector<SliceSpec>& specs);
  graph::TensorId partial_sum(graph::TensorId source, int32_t block, int32_t device);
  graph::TensorId own_copy(graph::TensorId source, int32_t block, int32_t device);
  // A tensor of no width, which only orders.
  graph::TensorId order(graph::TensorId source, int32_t block);

  // A tensor of exactly these columns that `device` can read; adds windows, concatenations and sums
  // as needed.
  graph::TensorId read(graph::TensorId source, int32_t block, int32_t device, Range columns);
  graph::TensorId read_all(graph::TensorId source, int32_t block, int32_t device);

  // Queues an operator in the stage and layer, and with the pause, of set_context().
  void emit(graph::Op op, int32_t device, int32_t block, bool input_stationary = false);

  int64_t width(graph::TensorId source) const { return source_.tensor(source).width; }
  // Stage, layer and pause of the operators that are added from now on.
  void set_context(graph::Stage stage, int32_t layer, double delay_us);
  // They belong to the next step of the pass.
  void next_step() { ++step_; }

 private:
  struct Value {
    std::vector<Slice> slices;
    graph::TensorId whole = -1;  // the tensor whose windows the slices are
  };
  // What a tensor holds of a value. In blocks of one span, the same parts are rows of one tensor.
  struct Role {
    enum Kind { kWhole, kShared, kPartial, kOwnCopy } kind = kWhole;
    int32_t device = 0;  // that writes it; of a whole one, 0
    Range columns;
  };

  Value& value(graph::TensorId source, int32_t block);
  bool computed_on(graph::TensorId source, int32_t block, int32_t device);
  graph::TensorId add_tensor(graph::TensorId source, int32_t block, const Role& role);
  graph::TensorId new_tensor(graph::TensorId source, int32_t block, int64_t width);
  graph::TensorId window(graph::TensorId of, Range columns, int32_t block);
  graph::TensorId concatenate(std::vector<graph::TensorId> inputs, graph::TensorId source,
                              int32_t block, int32_t device, Range columns);
  graph::TensorId join(graph::TensorId source, int32_t block, int32_t device, Range columns);
  graph::TensorId sum(graph::TensorId source, int32_t block, int32_t device);
  const Slice* covering(const std::vector<Slice>& slices, int32_t device, Range columns) const;
  bool one_row(int32_t block) const;

  void bring(graph::TensorId source, int32_t block);
  std::vector<Slice> common(graph::TensorId source, const std::vector<int32_t>& blocks);
  bool complete(graph::TensorId source, const std::vector<Slice>& slices) const;
  void bring_whole(graph::TensorId source, int32_t block);
  bool has_whole(graph::TensorId source, const std::vector<int32_t>& blocks);

  const graph::Graph& source_;
  std::span<const device::DeviceInfo> infos_;
  int64_t max_logit_rows_;
  CutGraph& out_;
  std::vector<Value> values_;                 // by tensor and block
  size_t blocks_;                             // and one for the whole pass
  std::vector<std::vector<int32_t>> across_;  // by block: those that share its rows in its span
  // By value, span, kind, device and columns.
  std::map<std::tuple<graph::TensorId, int32_t, int, int32_t, int64_t, int64_t>, graph::TensorId>
      spans_;
  graph::Stage stage_ = graph::Stage::kInput;
  int32_t layer_ = -1;
  double delay_us_ = 0;
  int32_t step_ = 0;
};

}  // namespace troika::plan
