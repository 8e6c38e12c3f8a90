#include "troika/plan/slices.h"

#include <algorithm>
#include <climits>

namespace troika::plan {

using graph::TensorId;

namespace {

// Joined chunks have two partitions of the same rows.
std::vector<std::vector<int32_t>> find_across(const CutGraph& cut) {
  std::vector<std::vector<int32_t>> across(cut.blocks.size());
  std::map<int32_t, std::vector<size_t>> of_span;
  for (size_t b = 0; b < cut.n_worked_on; ++b) {
    if (cut.blocks[b].span >= 0) of_span[cut.blocks[b].span].push_back(b);
  }
  for (const auto& [span, members] : of_span) {
    for (const size_t one : members) {
      for (const size_t other : members) {
        const Block& a = cut.blocks[one];
        const Block& b = cut.blocks[other];
        const bool same_partition = (a.chunks > 1) == (b.chunks > 1);
        if (same_partition || a.begin >= b.end() || b.begin >= a.end()) continue;
        across[one].push_back(static_cast<int32_t>(other));
      }
    }
  }
  return across;
}

}  // namespace

Slices::Slices(const graph::Graph& source, std::span<const device::DeviceInfo> infos,
               int64_t max_logit_rows, CutGraph& out)
    : source_(source),
      infos_(infos),
      max_logit_rows_(max_logit_rows),
      out_(out),
      values_(source.tensors.size() * (out.blocks.size() + 1)),
      blocks_(out.blocks.size()),
      across_(find_across(out)) {}

Slices::Value& Slices::value(TensorId source, int32_t block) {
  const size_t index = block == kWholePass ? blocks_ : static_cast<size_t>(block);
  return values_[static_cast<size_t>(source) * (blocks_ + 1) + index];
}

const std::vector<Slice>& Slices::of(TensorId source, int32_t block) {
  bring(source, block);
  return value(source, block).slices;
}

std::vector<SliceSpec> Slices::shared(TensorId source, int32_t block) {
  std::vector<SliceSpec> specs;
  for (const Slice& slice : of(source, block)) {
    if (slice.shared()) specs.push_back({slice.device, slice.columns});
  }
  return specs;
}

bool Slices::has_partial_sums(TensorId source, int32_t block) {
  const auto& slices = of(source, block);
  return std::any_of(slices.begin(), slices.end(), [](const Slice& s) { return s.partial; });
}

bool Slices::computed_on(TensorId source, int32_t block, int32_t device) {
  const auto& slices = of(source, block);
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& s) {
    return !s.partial && s.device == device && s.columns.size() == width(source);
  });
}

bool Slices::at_hand(TensorId source, int32_t block, int32_t device) {
  if (computed_on(source, block, device)) return true;
  const auto& slices = of(source, block);
  return std::any_of(slices.begin(), slices.end(), [](const Slice& s) { return s.shared(); });
}

bool Slices::one_row(int32_t block) const {
  return block == kWholePass ? max_logit_rows_ == 1
                             : out_.blocks[static_cast<size_t>(block)].padded == 1;
}

TensorId Slices::new_tensor(TensorId source, int32_t block, int64_t tensor_width) {
  graph::Tensor tensor = source_.tensor(source);
  tensor.width = tensor_width;
  tensor.producer = -1;
  out_.graph.tensors.push_back(std::move(tensor));
  out_.tensor_blocks.push_back(block);
  return static_cast<TensorId>(out_.graph.tensors.size() - 1);
}

TensorId Slices::add_tensor(TensorId source, int32_t block, const Role& role) {
  const int64_t size = role.columns.size();
  const int32_t span = block == kWholePass ? -1 : out_.blocks[static_cast<size_t>(block)].span;
  if (span < 0) return new_tensor(source, block, size);
  const auto [place, is_new] = spans_.try_emplace(
      {source, span, role.kind, role.device, role.columns.begin, role.columns.end}, -1);
  if (is_new) place->second = new_tensor(source, span, size);
  return window(place->second, {0, size}, block);
}

TensorId Slices::window(TensorId of, Range columns, int32_t block) {
  graph::Tensor tensor = out_.graph.tensor(of);
  const bool nested = tensor.window_of >= 0;
  tensor.window_begin = columns.begin + (nested ? tensor.window_begin : 0);
  tensor.window_of = nested ? tensor.window_of : of;
  tensor.width = columns.size();
  tensor.producer = -1;
  out_.graph.tensors.push_back(std::move(tensor));
  out_.tensor_blocks.push_back(block);
  return static_cast<TensorId>(out_.graph.tensors.size() - 1);
}

void Slices::set_context(graph::Stage stage, int32_t layer, double delay_us) {
  stage_ = stage;
  layer_ = layer;
  delay_us_ = delay_us;
}

void Slices::emit(graph::Op op, int32_t device, int32_t block, bool input_stationary) {
  op.stage = stage_;
  op.layer = layer_;
  graph::Tensor& output = out_.graph.tensors[static_cast<size_t>(op.output)];
  if (output.producer < 0) output.producer = static_cast<graph::OpId>(out_.graph.ops.size());
  out_.graph.ops.push_back(std::move(op));
  out_.assignments.push_back({device, block, input_stationary, delay_us_, step_});
}

std::vector<TensorId> Slices::outputs(TensorId source, int32_t block,
                                      const std::vector<SliceSpec>& specs) {
  Value& v = value(source, block);
  const Range all = {0, width(source)};
  const bool in_place =
      specs.size() > 1 &&
      (one_row(block) || std::all_of(specs.begin(), specs.end(), [&](const SliceSpec& spec) {
         return infos_[static_cast<size_t>(spec.device)].strided;
       }));
  const bool single = specs.size() == 1 && specs.front().columns == all;
  if (in_place || single) v.whole = add_tensor(source, block, {Role::kWhole, 0, all});
  std::vector<TensorId> tensors;
  for (const SliceSpec& spec : specs) {
    const TensorId tensor =
        single     ? v.whole
        : in_place ? window(v.whole, spec.columns, block)
                   : add_tensor(source, block, {Role::kShared, spec.device, spec.columns});
    v.slices.push_back({spec.device, spec.columns, tensor, false, false});
    tensors.push_back(tensor);
  }
  return tensors;
}

TensorId Slices::partial_sum(TensorId source, int32_t block, int32_t device) {
  const Range all = {0, width(source)};
  const TensorId tensor = add_tensor(source, block, {Role::kPartial, device, all});
  value(source, block).slices.push_back({device, all, tensor, true, false});
  return tensor;
}

TensorId Slices::own_copy(TensorId source, int32_t block, int32_t device) {
  const Range all = {0, width(source)};
  const TensorId tensor = add_tensor(source, block, {Role::kOwnCopy, device, all});
  value(source, block).slices.push_back({device, all, tensor, false, true});
  return tensor;
}

TensorId Slices::order(TensorId source, int32_t block) { return new_tensor(source, block, 0); }

TensorId Slices::sum(TensorId source, int32_t block, int32_t device) {
  graph::Op op;
  op.kind = graph::OpKind::kAdd;
  for (const Slice& slice : of(source, block)) {
    if (slice.partial) op.inputs.push_back(slice.tensor);
  }
  op.output = own_copy(source, block, device);
  const TensorId output = op.output;
  emit(std::move(op), device, block);
  return output;
}

// A copy of columns for a device, from tensors that hold them side by side.
TensorId Slices::concatenate(std::vector<TensorId> inputs, TensorId source, int32_t block,
                             int32_t device, Range columns) {
  graph::Op op;
  op.kind = graph::OpKind::kConcat;
  op.inputs = std::move(inputs);
  op.output = add_tensor(source, block, {Role::kOwnCopy, device, columns});
  const TensorId output = op.output;
  value(source, block).slices.push_back({device, columns, output, false, true});
  emit(std::move(op), device, block);
  return output;
}

TensorId Slices::join(TensorId source, int32_t block, int32_t device, Range columns) {
  std::vector<TensorId> inputs;
  // The slices of one cut follow each other in order of columns.
  const std::vector<Slice> slices = of(source, block);
  int64_t next = columns.begin;
  for (const Slice& slice : slices) {
    if (!slice.shared() || slice.columns.begin > next || slice.columns.end <= next) continue;
    const Range wanted = {next, std::min(slice.columns.end, columns.end)};
    const Range within = {wanted.begin - slice.columns.begin, wanted.end - slice.columns.begin};
    inputs.push_back(wanted == slice.columns ? slice.tensor : window(slice.tensor, within, block));
    next = wanted.end;
    if (next == columns.end) break;
  }
  return concatenate(std::move(inputs), source, block, device, columns);
}

// The slice to read columns from, the most direct one first: none if they have to be joined.
const Slice* Slices::covering(const std::vector<Slice>& slices, int32_t device,
                              Range columns) const {
  const Slice* best = nullptr;
  int best_rank = INT_MAX;
  for (const Slice& slice : slices) {
    const bool covers = slice.columns.begin <= columns.begin && slice.columns.end >= columns.end;
    if (slice.partial || !covers) continue;
    const bool exact = slice.columns == columns;
    const bool others_copy = slice.own_copy && slice.device != device;
    const int rank = (others_copy ? 4 : 0) + (exact ? 0 : 2) + (slice.device == device ? 0 : 1);
    if (rank >= best_rank) continue;
    best = &slice;
    best_rank = rank;
  }
  return best;
}

TensorId Slices::read(TensorId source, int32_t block, int32_t device, Range columns) {
  const Range all = {0, width(source)};
  if (has_partial_sums(source, block) && !at_hand(source, block, device)) {
    const TensorId total = sum(source, block, device);
    if (columns == all) return total;
  }
  bring(source, block);
  const Value& v = value(source, block);
  const Slice* const from = covering(v.slices, device, columns);
  if (from != nullptr && from->columns == columns) return from->tensor;
  if (v.whole >= 0 && columns == all) return v.whole;
  const bool takes_windows = infos_[static_cast<size_t>(device)].strided || one_row(block);
  if (from == nullptr && v.whole >= 0 && takes_windows) return window(v.whole, columns, block);
  if (from == nullptr) return join(source, block, device, columns);
  const Range within = {columns.begin - from->columns.begin, columns.end - from->columns.begin};
  const TensorId part = window(from->tensor, within, block);
  if (takes_windows) return part;
  return concatenate({part}, source, block, device, columns);
}

TensorId Slices::read_all(TensorId source, int32_t block, int32_t device) {
  return read(source, block, device, {0, width(source)});
}

}  // namespace troika::plan
