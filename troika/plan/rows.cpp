#include "troika/plan/rows.h"

#include <algorithm>
#include <set>

#include "troika/plan/shares.h"

namespace troika::plan {
namespace {

const device::DeviceInfo& info_of(const Plan& plan, std::span<const device::DeviceInfo> infos,
                                  const std::string& device) {
  const auto found = std::find(plan.devices.begin(), plan.devices.end(), device);
  return infos[static_cast<size_t>(found - plan.devices.begin())];
}

std::vector<Range> row_shares(const Placement& placement, const Plan& plan,
                              std::span<const device::DeviceInfo> infos, int64_t rows) {
  std::vector<double> shares;
  std::vector<std::span<const int64_t>> standard;
  for (const Part& part : placement.parts) {
    shares.push_back(part.share);
    standard.push_back(info_of(plan, infos, part.device).standard_rows);
  }
  return split_rows(rows, shares, standard);
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
    return info_of(plan, infos, part.device).standard_rows;
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

struct Chunk {
  int32_t number = 0;
  int64_t rows = 0;
};

bool holds_in(const Placement& placement, int32_t chunk) {
  return placement.stage != graph::Stage::kHead &&
         (placement.chunk < 0 || placement.chunk == chunk);
}

// The longest length that a static-shape device computes for rows [first, first + rows) of a chunk.
Result<int64_t> padded_for_all(const RowsBucket& bucket, const Plan& plan,
                               std::span<const device::DeviceInfo> infos, const Chunk& chunk,
                               Range rows) {
  int64_t padded = rows.size();
  for (const Placement& placement : bucket.placements) {
    if (!holds_in(placement, chunk.number)) continue;
    const size_t owner = placement.cut == Cut::kActivationCentric
                             ? part_of_rows(placement, plan, infos, 0, chunk.rows, rows.begin)
                             : placement.parts.size();
    for (size_t i = 0; i < placement.parts.size(); ++i) {
      if (owner < placement.parts.size() && i != owner) continue;
      const Part& part = placement.parts[i];
      const int64_t own = padded_rows(rows.size(), info_of(plan, infos, part.device).standard_rows);
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

}  // namespace

Result<std::vector<Block>> cut_rows(const Plan& plan, const RowsBucket& bucket, int64_t rows,
                                    std::span<const device::DeviceInfo> infos) {
  std::vector<Block> blocks;
  int32_t chunk = 0;
  for (int64_t begin = 0; begin < rows; ++chunk) {
    int64_t size = rows - begin;
    if (!bucket.chunks.empty()) {
      const size_t index = std::min(static_cast<size_t>(chunk), bucket.chunks.size() - 1);
      size = std::min(size, bucket.chunks[index]);
    }
    std::set<int64_t> borders = {size};
    for (const Placement& placement : bucket.placements) {
      if (!holds_in(placement, chunk)) continue;
      RETURN_IF_ERROR(add_borders(borders, placement, plan, infos, size));
    }
    int64_t first = 0;
    for (const int64_t border : borders) {
      if (border == first) continue;
      Block block;
      block.begin = begin + first;
      block.rows = border - first;
      block.chunk = chunk;
      ASSIGN_OR_RETURN(block.padded,
                       padded_for_all(bucket, plan, infos, {chunk, size}, {first, border}));
      blocks.push_back(block);
      first = border;
    }
    begin += size;
  }
  return blocks;
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
         std::all_of(
             bucket.placements.begin(), bucket.placements.end(), [&](const Placement& placement) {
               return placement.cut != Cut::kActivationCentric &&
                      std::all_of(placement.parts.begin(), placement.parts.end(),
                                  [&](const Part& part) {
                                    return info_of(plan, infos, part.device).standard_rows.empty();
                                  });
             });
}

}  // namespace troika::plan
