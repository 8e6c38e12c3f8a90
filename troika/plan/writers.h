// Who wrote what the operators of a cut graph read.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/plan/cut_graph.h"
#include "troika/plan/shares.h"

namespace troika::plan {

// Operators are shown to it in order. A writer is any number, of an operator or of a task.
class Writers {
 public:
  explicit Writers(const CutGraph& cut);

  void record(const graph::Op& op, int32_t writer);
  // Of what the operator reads, ascending, each once.
  std::vector<int32_t> before(const graph::Op& op) const;

 private:
  // Columns of a tensor with memory of its own, or heads of a layer's KV cache; rows of the pass.
  struct Write {
    Range columns;
    Range rows;
    int32_t writer = 0;
  };

  Range columns_of(graph::TensorId id) const;
  static void collect(const std::vector<Write>& writes, Range columns, Range rows,
                      std::vector<int32_t>& writers);

  const CutGraph& cut_;
  std::vector<std::vector<Write>> tensors_;  // by tensor with memory
  std::vector<std::vector<Write>> kv_;       // by layer
};

// By operator: whether another device reads what it writes, and its own device goes on with a
// product or attention in the same stage, of which nobody else needs anything: who waits should not
// wait for that too.
std::vector<bool> find_ends(const CutGraph& cut, size_t n_devices);

}  // namespace troika::plan
