// What plan::cut() makes of one block of rows, stage by stage: which operators on which device, and
// what each reads, without tensors, names and memory. It follows the rules of plan/cutter.h step by
// step; tests hold the two together.
//
// A block's stages do not depend on other blocks, and layers that are alike come out alike: the
// caller cuts a few of them and repeats the last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/product_ranges.h"
#include "troika/plan/shares.h"
#include "troika/sim/lowered.h"

namespace troika::sim {

// Of an OpRef: an operator of the head, whatever block's rows it works on.
inline constexpr int32_t kHeadBlock = INT32_MAX;

// An operator of the same block: the position that it was queued in (0: the input, then those of
// the layers, as many in each, then the head) and its number there.
struct OpRef {
  int32_t position = 0;
  int32_t op = 0;
  int32_t device = 0;
  int32_t block = -1;  // in the head: of which block; -1: the same, or the head itself
  bool fixed =
      false;  // it does not belong to a layer: it stays when a stage is repeated in another
  friend bool operator==(const OpRef&, const OpRef&) = default;
};

struct CutOp {
  graph::OpKind kind = graph::OpKind::kAdd;
  int32_t device = 0;
  int32_t block = -1;        // in the head: the block whose rows it works on; -1: wanted rows
  graph::OpId product = -1;  // of the graph
  int64_t n = 0;             // of a product: outputs and inputs
  int64_t k = 0;
  int64_t n_begin = 0;  // where its slice of the weight begins
  int64_t k_begin = 0;
  double weight_bits = 0;
  int64_t width = 0;  // of all that it reads and writes, elements of one row
  double width_bytes = 0;
  plan::Range heads;       // KV heads that it writes or reads
  int64_t head_width = 0;  // of attention: query heads times their size
  int64_t group = 1;
  bool input_stationary = false;
  bool wanted_rows = false;  // its output has a row for each wanted one
  double delay_us = 0;
  int32_t first_dep = 0;  // CutStage::deps[first_dep, first_dep + n_deps)
  int32_t n_deps = 0;
  int32_t first_cross = 0;  // CutStage::cross[first_cross, first_cross + n_cross)
  int32_t n_cross = 0;
};

// What stands in one position: a stage, or a turn of one.
struct CutStage {
  std::vector<CutOp> ops;
  std::vector<OpRef> deps;
  std::vector<OpRef> cross;         // those of `deps` that another device computes
  std::vector<int32_t> kv_writers;  // among the operators
  std::vector<int32_t> attention;   // the same
  int32_t number = 0;               // for the caller
};

// Who computes an operator of the graph in this block.
struct Decision {
  const plan::Placement* placement = nullptr;
  int32_t owner = -1;  // of the whole block; -1: the placement cuts it
};

// Borrows all that it is given.
class PassCutter {
 public:
  PassCutter(const graph::Graph& graph, std::span<const device::DeviceInfo> infos,
             const std::vector<std::string>& devices, const plan::ProductRanges& ranges,
             const LoweredOptions& options, int32_t positions_of_layer);

  // A fresh pass.
  void begin_pass() { sound_ = true; }
  // A fresh block. `one_row`: it has memory for a single row.
  void begin(bool one_row);
  // Cuts the operators of one position; `decide` gives each one's decision. Positions in order; of
  // two that follow each other within a layer or from one to the next, none may be left out but by
  // skip().
  template <class Decide>
  void cut(int32_t position, std::span<const graph::OpId> ops, const Decide& decide,
           CutStage& out) {
    start(position, out);
    for (const graph::OpId id : ops) run(id, decide(id));
  }
  // What is known of layer `from` holds for layer `to`.
  void skip(int32_t from, int32_t to);
  // False if a value of more than one layer before was needed: plan::cut() has to do it.
  bool sound() const { return sound_; }

  struct Slice {
    int32_t device = 0;
    plan::Range columns;
    OpRef writer;
    bool partial = false;
    bool own_copy = false;
    bool gathered = false;  // by all operators of `gathers_`
    bool shared() const { return !partial && !own_copy; }
  };
  struct Value {
    std::vector<Slice> slices;
    bool whole = false;
  };
  struct Memory {
    std::vector<Value> outer;      // by tensor of the input
    std::vector<Value> layers[2];  // by tensor of an even or odd layer
    int32_t layer[2] = {-1, -1};   // that these are of
    bool one_row = false;
  };

  // What is known of this block after its last stage.
  void save(Memory& out) const { out = own_; }
  // The head, which reads all `blocks`; the logits go to `last_device`. `one_row`: one is wanted.
  void cut_head(std::vector<Memory>& blocks, bool one_row, int32_t position,
                std::span<const graph::OpId> ops, const std::vector<Decision>& decisions,
                int32_t last_device, CutStage& out);

 private:
  struct Place {
    int32_t layer = -1;
    int32_t index = 0;
    bool head = false;
  };
  struct Spec {
    int32_t device = 0;
    plan::Range columns;
  };
  // What an operator is to read.
  struct Inputs {
    std::vector<OpRef> deps;
    int64_t width = 0;
    double width_bytes = 0;
    int64_t first_width = 0;
  };

  void start(int32_t position, CutStage& out);
  void run(graph::OpId id, const Decision& decision);
  Value& value(graph::TensorId tensor);
  int64_t width(graph::TensorId tensor) const { return graph_.tensor(tensor).width; }
  double bytes(graph::TensorId tensor, int64_t width) const {
    return static_cast<double>(width * graph::dtype_bytes(graph_.tensor(tensor).type));
  }
  bool one_row() const { return in_head_ ? head_one_row_ : memory_->one_row; }
  bool takes_windows(int32_t device) const {
    return infos_[static_cast<size_t>(device)].strided || one_row();
  }
  int32_t device_of(const plan::Part& part) const;

  bool has_partial_sums(graph::TensorId tensor);
  bool at_hand(graph::TensorId tensor, int32_t device);
  std::vector<Spec> shared(graph::TensorId tensor);
  std::vector<Spec> to_specs(const plan::Placement& placement,
                             const std::vector<plan::Range>& ranges) const;
  std::vector<Spec> places(graph::TensorId tensor, const plan::Placement& placement);

  void want(graph::TensorId tensor, int32_t device);
  bool may_recompute(graph::OpId id, int32_t device, int before);
  void light(graph::OpId id, int32_t device, bool for_all);
  void gather_rows(graph::OpId id, int32_t device, bool for_all);
  void read(graph::TensorId tensor, int32_t device, plan::Range columns, Inputs& inputs);
  void read_slices(graph::TensorId tensor, int32_t device, plan::Range columns, Inputs& inputs);
  void add_shared(graph::TensorId tensor, plan::Range columns, Inputs& inputs);
  void add_writer(const Slice& slice, Inputs& inputs) const;
  void add_width(graph::TensorId tensor, int64_t columns, Inputs& inputs) const;
  OpRef concatenate(graph::TensorId tensor, int32_t device, plan::Range columns,
                    const Inputs& inputs);
  OpRef emit(CutOp op, const Inputs& inputs, graph::TensorId output, int64_t output_width);
  void mark_outputs(graph::TensorId tensor, const std::vector<Spec>& specs);

  void product(graph::OpId id, const Decision& decision);
  void whole_product(graph::OpId id, int32_t device, const plan::Placement& placement);
  void output_slices(graph::OpId id, const plan::Placement& placement);
  void partial_products(graph::OpId id, const plan::Placement& placement,
                        const std::vector<Spec>& specs);
  CutOp product_op(graph::OpId id, int32_t device, const plan::Placement& placement,
                   plan::Range outputs, plan::Range inputs) const;
  void follow(graph::OpId id, const plan::Placement& placement);
  void kv_write(graph::OpId id, const plan::Placement& placement);
  void attention(graph::OpId id, const Decision& decision);

  const graph::Graph& graph_;
  std::span<const device::DeviceInfo> infos_;
  const std::vector<std::string>& devices_;
  const plan::ProductRanges& ranges_;
  const LoweredOptions& options_;
  int32_t positions_of_layer_;
  std::vector<Place> where_;  // by tensor
  size_t outer_size_ = 0;
  size_t layer_size_ = 0;
  size_t head_size_ = 0;

  Memory own_;
  Memory* memory_ = &own_;
  std::vector<Memory>* blocks_ = nullptr;  // in the head
  std::vector<Value> head_;
  bool in_head_ = false;  // reading wanted rows
  bool head_one_row_ = false;
  int32_t block_ = -1;  // in the head: the one that is read
  Value nothing_;
  int32_t position_ = 0;
  int32_t layer_ = -1;
  double delay_us_ = 0;
  CutStage* out_ = nullptr;
  std::vector<OpRef> gathers_;
  bool sound_ = true;
};

}  // namespace troika::sim
