// Values of joined chunks: from the blocks of one partition of their rows to those of the other.
#include <algorithm>

#include "troika/plan/slices.h"

namespace troika::plan {

using graph::TensorId;

// Slices that are the same in all of these blocks: rows of the same tensors.
std::vector<Slice> Slices::common(TensorId source, const std::vector<int32_t>& blocks) {
  std::vector<Slice> slices = value(source, blocks.front()).slices;
  std::erase_if(slices, [&](const Slice& slice) {
    return !std::all_of(blocks.begin(), blocks.end(), [&](int32_t block) {
      const auto& others = value(source, block).slices;
      return std::any_of(others.begin(), others.end(), [&](const Slice& other) {
        return other.device == slice.device && other.columns == slice.columns &&
               out_.graph.memory_of(other.tensor) == out_.graph.memory_of(slice.tensor);
      });
    });
  });
  // Of sums all or none.
  const auto count_sums = [](const std::vector<Slice>& all) {
    return std::count_if(all.begin(), all.end(), [](const Slice& s) { return s.partial; });
  };
  const bool all_sums = std::all_of(blocks.begin(), blocks.end(), [&](int32_t block) {
    return count_sums(value(source, block).slices) == count_sums(slices);
  });
  int64_t shared_columns = 0;
  for (const Slice& slice : slices) shared_columns += slice.shared() ? slice.columns.size() : 0;
  std::erase_if(slices, [&](const Slice& slice) {
    return (slice.partial && !all_sums) || (slice.shared() && shared_columns < width(source));
  });
  return slices;
}

// Whether a value can be had from these slices.
bool Slices::complete(TensorId source, const std::vector<Slice>& slices) const {
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    return slice.partial || slice.shared() || slice.columns.size() == width(source);
  });
}

void Slices::bring(TensorId source, int32_t block) {
  if (block == kWholePass || !value(source, block).slices.empty()) return;
  const std::vector<int32_t>& others = across_[static_cast<size_t>(block)];
  const bool exists = !others.empty() && std::none_of(others.begin(), others.end(), [&](int32_t b) {
    return value(source, b).slices.empty();
  });
  if (!exists) return;
  std::vector<Slice> slices = common(source, others);
  const bool whole = has_whole(source, others);
  if (!complete(source, slices) && !whole) return bring_whole(source, block);
  Value& v = value(source, block);
  for (Slice& slice : slices) {
    slice.tensor = window(slice.tensor, {0, slice.columns.size()}, block);
  }
  v.slices = std::move(slices);
  if (!whole) return;
  const Range all = {0, width(source)};
  v.whole = add_tensor(source, block, {Role::kWhole, 0, all});
  if (std::any_of(v.slices.begin(), v.slices.end(), [](const Slice& s) { return s.shared(); }))
    return;
  v.slices.push_back({value(source, others.front()).slices.front().device, all, v.whole});
}

bool Slices::has_whole(TensorId source, const std::vector<int32_t>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](int32_t block) { return value(source, block).whole >= 0; });
}

// The blocks hold the value in different ways: each one's rows are copied to one tensor.
void Slices::bring_whole(TensorId source, int32_t block) {
  const Range all = {0, width(source)};
  const std::vector<int32_t>& others = across_[static_cast<size_t>(block)];
  for (const int32_t other : others) {
    if (value(source, other).whole >= 0) continue;
    const int32_t device = value(source, other).slices.front().device;
    graph::Op op;
    op.kind = graph::OpKind::kConcat;
    op.inputs = {read_all(source, other, device)};
    op.output = add_tensor(source, other, {Role::kWhole, 0, all});
    value(source, other).whole = op.output;
    emit(std::move(op), device, other);
  }
  Value& v = value(source, block);
  v.whole = add_tensor(source, block, {Role::kWhole, 0, all});
  v.slices.push_back({value(source, others.front()).slices.front().device, all, v.whole});
}

}  // namespace troika::plan
