#include "troika/plan/rows.h"

#include <algorithm>
#include <set>

#include "troika/plan/shares.h"
#include "troika/plan/steps.h"

namespace troika::plan {
namespace {

const device::DeviceInfo& info_of(const Plan& plan, std::span<const device::DeviceInfo> infos,
                                  const Part& part) {
  return infos[static_cast<size_t>(device_index(plan.devices, part))];
}

std::vector<Range> row_shares(const Placement& placement, const Plan& plan,
                              std::span<const device::DeviceInfo> infos, int64_t rows) {
  std::vector<std::span<const int64_t>> standard;
  for (const Part& part : placement.parts) {
    standard.push_back(info_of(plan, infos, part).standard_rows);
  }
  return split_rows(rows, placement.shares(), standard);
}

void add_pieces(std::set<int64_t>& borders, int64_t begin, const std::vector<int64_t>& pieces) {
  for (const int64_t piece : pieces) {
    begin += piece;
    borders.insert(begin);
  }
}

// Borders of blocks that a placement asks for, relative to the chunk's first row.
Status add_borders(std::set<int64_t>& borders, const Placement& placement, const Plan& plan,
                   std::span<const device::DeviceInfo> infos, int64_t rows) {
  const auto standard_of = [&](const Part& part) -> const std::vector<int64_t>& {
    return info_of(plan, infos, part).standard_rows;
  };
  const auto pieces_of = [&](const Part& part, int64_t count) -> Result<std::vector<int64_t>> {
    auto pieces = standard_pieces(count, standard_of(part), placement.cut == Cut::kHybrid);
    if (pieces.empty() && count > 0) {
      return make_error(ErrorCode::kUnsupported, "plan: device {} has no standard length",
                        part.device);
    }
    return pieces;
  };
  if (placement.cut == Cut::kActivationCentric) {
    const std::vector<Range> ranges = row_shares(placement, plan, infos, rows);
    for (size_t i = 0; i < ranges.size(); ++i) {
      ASSIGN_OR_RETURN(const auto pieces, pieces_of(placement.parts[i], ranges[i].size()));
      add_pieces(borders, ranges[i].begin, pieces);
    }
    return {};
  }
  for (const Part& part : placement.parts) {
    ASSIGN_OR_RETURN(const auto pieces, pieces_of(part, rows));
    add_pieces(borders, 0, pieces);
  }
  return {};
}

// The rows of a chunk, or of chunks that join.
struct Extent {
  int32_t chunk = 0;
  int32_t chunks = 1;
  int64_t begin = 0;
  int64_t rows = 0;
};

// The stages that a partition of rows is for.
enum class Stages { kAll, kJoined, kApart };

class RowCutter {
 public:
  RowCutter(const Plan& plan, const RowsBucket& bucket, std::span<const device::DeviceInfo> infos)
      : plan_(plan), bucket_(bucket), infos_(infos), joined_(bucket) {
    for (const Placement& placement : bucket.placements) {
      for_joined_.push_back(joined_.touch(placement));
      for_apart_.push_back(!joined_.cover(placement));
    }
  }

  Result<RowCut> run(int64_t rows) {
    const std::vector<Extent> chunks = chunks_of(rows);
    const auto size = static_cast<size_t>(joined_.group_size());
    for (size_t first = 0; first < chunks.size(); first += size) {
      const auto group = std::span(chunks).subspan(first, std::min(size, chunks.size() - first));
      ASSIGN_OR_RETURN(const bool joins, join(group));
      cut_.apart.push_back(!joins);
      if (joins) continue;
      for (const Extent& chunk : group) {
        ASSIGN_OR_RETURN(const auto blocks, partition(chunk, Stages::kAll));
        cut_.blocks.insert(cut_.blocks.end(), blocks.begin(), blocks.end());
      }
    }
    cut_.blocks.insert(cut_.blocks.end(), joined_blocks_.begin(), joined_blocks_.end());
    cut_.n_worked_on = cut_.blocks.size();
    for (Block& block : cut_.blocks) {
      if (block.span >= 0) block.span += static_cast<int32_t>(cut_.n_worked_on);
    }
    cut_.blocks.insert(cut_.blocks.end(), spans_.begin(), spans_.end());
    return std::move(cut_);
  }

 private:
  std::vector<Extent> chunks_of(int64_t rows) const {
    std::vector<Extent> chunks;
    int64_t begin = 0;
    for (const int64_t size : chunk_sizes(bucket_, rows)) {
      chunks.push_back({static_cast<int32_t>(chunks.size()), 1, begin, size});
      begin += size;
    }
    return chunks;
  }

  // Two partitions of the same rows, for the stages that join and for the others; false if that
  // cannot be.
  Result<bool> join(std::span<const Extent> group) {
    if (group.size() < 2) return false;
    Extent all = group.front();
    all.chunks = static_cast<int32_t>(group.size());
    all.rows = group.back().begin + group.back().rows - all.begin;
    std::vector<Block> apart;
    for (const Extent& chunk : group) {
      ASSIGN_OR_RETURN(const auto blocks, partition(chunk, Stages::kApart));
      apart.insert(apart.end(), blocks.begin(), blocks.end());
    }
    ASSIGN_OR_RETURN(std::vector<Block> together, partition(all, Stages::kJoined));
    Block span{all.begin, all.rows, all.rows, all.chunk, all.chunks};
    for (std::vector<Block>* const blocks : {&apart, &together}) {
      for (Block& block : *blocks) {
        const bool last = block.end() == span.end();
        if (!last && block.padded > block.rows) return false;
        block.span = static_cast<int32_t>(spans_.size());
        span.padded = std::max(span.padded, block.begin - span.begin + block.padded);
      }
    }
    cut_.blocks.insert(cut_.blocks.end(), apart.begin(), apart.end());
    joined_blocks_.insert(joined_blocks_.end(), together.begin(), together.end());
    spans_.push_back(span);
    return true;
  }

  Result<std::vector<Block>> partition(const Extent& extent, Stages stages) const {
    std::set<int64_t> borders = {extent.rows};
    for (const Placement& placement : bucket_.placements) {
      if (!holds_in(placement, extent, stages)) continue;
      RETURN_IF_ERROR(add_borders(borders, placement, plan_, infos_, extent.rows));
    }
    std::vector<Block> blocks;
    int64_t first = 0;
    for (const int64_t border : borders) {
      if (border == first) continue;
      Block block{extent.begin + first, border - first, 0, extent.chunk, extent.chunks};
      ASSIGN_OR_RETURN(block.padded, padded_for_all(extent, stages, {first, border}));
      blocks.push_back(block);
      first = border;
    }
    return blocks;
  }

  bool holds_in(const Placement& placement, const Extent& extent, Stages stages) const {
    if (placement.stage == graph::Stage::kHead) return false;
    if (placement.chunk >= 0 && placement.chunk != extent.chunk) return false;
    const auto index = static_cast<size_t>(&placement - bucket_.placements.data());
    return stages == Stages::kAll || (stages == Stages::kJoined ? for_joined_ : for_apart_)[index];
  }

  // The longest length that a static-shape device computes for some rows of an extent.
  Result<int64_t> padded_for_all(const Extent& extent, Stages stages, Range rows) const {
    int64_t padded = rows.size();
    for (const Placement& placement : bucket_.placements) {
      if (!holds_in(placement, extent, stages)) continue;
      const size_t owner = placement.cut == Cut::kActivationCentric
                               ? part_of_rows(placement, plan_, infos_, 0, extent.rows, rows.begin)
                               : placement.parts.size();
      for (size_t i = 0; i < placement.parts.size(); ++i) {
        if (owner < placement.parts.size() && i != owner) continue;
        const Part& part = placement.parts[i];
        const int64_t own = padded_rows(rows.size(), info_of(plan_, infos_, part).standard_rows);
        if (own == 0) {
          return make_error(ErrorCode::kUnsupported,
                            "plan: device {} has no standard length for {} rows", part.device,
                            rows.size());
        }
        padded = std::max(padded, own);
      }
    }
    return padded;
  }

  const Plan& plan_;
  const RowsBucket& bucket_;
  std::span<const device::DeviceInfo> infos_;
  JoinedStages joined_;
  std::vector<bool> for_joined_;  // by placement: whether it holds for a stage that joins chunks,
  std::vector<bool> for_apart_;   // for one that does not
  RowCut cut_;
  std::vector<Block> joined_blocks_;
  std::vector<Block> spans_;
};

}  // namespace

Result<RowCut> cut_rows(const Plan& plan, const RowsBucket& bucket, int64_t rows,
                        std::span<const device::DeviceInfo> infos) {
  return RowCutter(plan, bucket, infos).run(rows);
}

size_t part_of_rows(const Placement& placement, const Plan& plan,
                    std::span<const device::DeviceInfo> infos, int64_t chunk_begin,
                    int64_t chunk_rows, int64_t row) {
  const std::vector<Range> ranges = row_shares(placement, plan, infos, chunk_rows);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (row - chunk_begin < ranges[i].end && row - chunk_begin >= ranges[i].begin) return i;
  }
  return 0;
}

bool same_for_all_rows(const Plan& plan, const RowsBucket& bucket,
                       std::span<const device::DeviceInfo> infos) {
  return bucket.chunks.empty() &&
         std::all_of(bucket.placements.begin(), bucket.placements.end(),
                     [&](const Placement& placement) {
                       return placement.cut != Cut::kActivationCentric &&
                              std::all_of(placement.parts.begin(), placement.parts.end(),
                                          [&](const Part& part) {
                                            return info_of(plan, infos, part).standard_rows.empty();
                                          });
                     });
}

}  // namespace troika::plan
