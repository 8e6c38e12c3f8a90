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

// Consecutive rows of a pass. Every tensor of a block has memory of its own for `padded` rows.
struct Block {
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t padded = 0;  // the standard length that the static-shape devices compute
  int32_t chunk = 0;
};

// Blocks end where a chunk does, where a share of an activation-centric cut does, and where a
// static-shape device needs a standard length. `infos` in the order of Plan::devices.
// kUnsupported if a device has no length for them.
Result<std::vector<Block>> cut_rows(const Plan& plan, const RowsBucket& bucket, int64_t rows,
                                    std::span<const device::DeviceInfo> infos);

// Which part of an activation-centric placement computes a block of a chunk: the one whose rows
// hold the block's first. `chunk_begin` and `chunk_rows` say where the chunk lies.
size_t part_of_rows(const Placement& placement, const Plan& plan,
                    std::span<const device::DeviceInfo> infos, int64_t chunk_begin,
                    int64_t chunk_rows, int64_t row);

// True if the tasks of this bucket are the same for every number of rows up to max_rows: one block,
// no standard lengths.
bool same_for_all_rows(const Plan& plan, const RowsBucket& bucket,
                       std::span<const device::DeviceInfo> infos);

}  // namespace troika::plan
