// What the operators of a cut pass read: templates that the files of PassGrouper share.
#pragma once

#include "troika/sim/pass_tasks.h"

namespace troika::sim {

// The instance that a reference names.
inline int32_t PassGrouper::place(const CutInstance& from, const OpRef& ref) const {
  if (ref.block == kHeadBlock) return static_cast<int32_t>(instances_.size()) - 1;
  return place(ref.block >= 0 ? ref.block : from.block,
               ref.fixed ? ref.position : ref.position + from.shift);
}

// On other devices: keys of all rows before, and of its own. Visits instance and operator.
template <class Visit>
void PassGrouper::each_kv_writer(const CutInstance& from, const CutOp& op,
                                 const Visit& visit) const {
  for (int32_t block = 0; block <= from.block; ++block) {
    const int32_t index = place(block, from.position - 1);
    const CutInstance& writer = instances_[static_cast<size_t>(index)];
    for (const int32_t i : writer.stage->kv_writers) {
      const CutOp& write = writer.stage->ops[static_cast<size_t>(i)];
      const bool reads = write.heads.begin < op.heads.end && op.heads.begin < write.heads.end;
      if (reads && write.device != op.device) visit(index, writer.first_op + i);
    }
  }
}

// All that an operator reads of other devices.
template <class Visit>
void PassGrouper::each_cross(const CutInstance& from, const CutOp& op, const Visit& visit) const {
  const OpRef* const first = from.stage->cross.data() + op.first_cross;
  for (int32_t i = 0; i < op.n_cross; ++i) {
    const int32_t index = place(from, first[i]);
    visit(index, instances_[static_cast<size_t>(index)].first_op + first[i].op);
  }
  if (op.kind == graph::OpKind::kAttention) each_kv_writer(from, op, visit);
}

}  // namespace troika::sim
