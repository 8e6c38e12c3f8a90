// The rows of a pass, cut into micro-batches (chunks) and those into blocks: the rows that one task
// works on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// Consecutive rows of a pass. Every tensor of a block has memory for `padded` rows.
struct Block {
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t padded = 0;  // the standard length that the static-shape devices compute
  int32_t chunk = 0;   // the first
  int32_t chunks = 1;  // more than one: they join, this block's tasks compute rows of all of them
  int32_t span = -1;   // the block of all rows of joined chunks, of whose tensors this one's are
                       // rows; -1: they have memory of their own
  int64_t end() const { return begin + rows; }
};

struct RowCut {
  // First those of chunks one after another, then those of joined chunks, whose rows are the same,
  // then spans.
  std::vector<Block> blocks;
  size_t n_worked_on = 0;   // blocks but the spans, on which no task works
  std::vector<bool> apart;  // by group of chunks: whether they do not join
};

// Blocks end where a chunk does, where a share of an activation-centric cut does, and where a
// static-shape device needs a standard length. Chunks whose rows would be padded in the middle of
// a span do not join: the padding would overwrite the next chunk's rows. `infos` in the order of
// Plan::devices. kUnsupported if a device has no length for them.
Result<RowCut> cut_rows(const Plan& plan, const RowsBucket& bucket, int64_t rows,
                        std::span<const device::DeviceInfo> infos);

// Which part of an activation-centric placement computes a block of a chunk, or of joined ones: the
// part whose rows hold the block's first. `chunk_begin` and `chunk_rows` say where they lie.
size_t part_of_rows(const Placement& placement, const Plan& plan,
                    std::span<const device::DeviceInfo> infos, int64_t chunk_begin,
                    int64_t chunk_rows, int64_t row);

// True if the tasks of this bucket are the same for every number of rows up to max_rows: one block,
// no standard lengths.
bool same_for_all_rows(const Plan& plan, const RowsBucket& bucket,
                       std::span<const device::DeviceInfo> infos);

}  // namespace troika::plan
