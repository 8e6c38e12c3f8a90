#include "troika/plan/cut_graph.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "troika/plan/placement_table.h"
#include "troika/plan/shares.h"
#include "troika/plan/slices.h"

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpId;
using graph::OpKind;
using graph::Stage;
using graph::TensorId;

// Weight rows are stored in blocks of this many inputs at most (traits().block_weights).
constexpr int64_t kWeightBlock = 32;
// Borders finer than this would serve no device.
constexpr int64_t kLargestGrain = 256;
// A norm is computed again with the residual additions of two joins before it, not more.
constexpr int kMostRecomputed = 2;

// Cheap operators of whole rows: where a stage is cut, each device computes those that it needs
// instead of waiting for another's.
bool is_light(OpKind kind) {
  return kind == OpKind::kEmbed || kind == OpKind::kRopeTable || kind == OpKind::kRmsNorm ||
         kind == OpKind::kAdd || kind == OpKind::kGatherRows;
}

// Heads that a product's outputs are.
struct HeadUse {
  int64_t head_dim = 0;
  bool is_kv = false;
};

// Cuts one graph; used once.
class Cutter {
 public:
  Cutter(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
         int64_t max_logit_rows, std::span<const device::DeviceInfo> infos, CutGraph& out)
      : plan_(plan),
        bucket_(bucket),
        graph_(graph),
        infos_(infos),
        table_(plan, bucket, graph),
        slices_(graph, infos, max_logit_rows, out),
        out_(out),
        readers_(graph.tensors.size()) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      for (const TensorId input : graph.ops[i].inputs) {
        readers_[static_cast<size_t>(input)].push_back(static_cast<OpId>(i));
      }
    }
    for (const Block& block : out.blocks) {
      const auto chunk = static_cast<size_t>(block.chunk);
      chunk_spans_.resize(std::max(chunk_spans_.size(), chunk + 1), {block.begin, block.begin});
      chunk_spans_[chunk].end = block.begin + block.rows;
    }
  }

  void run() {
    // Windows of chunks go through the layers one after another; within a window, all chunks
    // through a stage before any through the next, so that a device has other chunks to work on
    // while one waits for a join.
    const auto chunks = static_cast<int32_t>(chunk_spans_.size());
    const auto window = bucket_.in_flight == 0 || bucket_.in_flight >= chunks
                            ? chunks
                            : static_cast<int32_t>(bucket_.in_flight);
    const auto ops = static_cast<OpId>(graph_.ops.size());
    for (int32_t first = 0; first < chunks; first += window) {
      for (OpId begin = 0; begin < ops;) {
        const OpId end = stage_end(begin);
        if (graph_.op(begin).stage != Stage::kHead) run_stage(begin, end, first, first + window);
        begin = end;
      }
    }
    run_head();
  }

 private:
  OpId stage_end(OpId begin) const {
    const Op& first = graph_.op(begin);
    OpId end = begin;
    while (end < static_cast<OpId>(graph_.ops.size()) && graph_.op(end).stage == first.stage &&
           graph_.op(end).layer == first.layer) {
      ++end;
    }
    return end;
  }

  void run_stage(OpId begin, OpId end, int32_t first_chunk, int32_t end_chunk) {
    for (size_t b = 0; b < out_.blocks.size(); ++b) {
      const int32_t chunk = out_.blocks[b].chunk;
      if (chunk < first_chunk || chunk >= end_chunk) continue;
      for (OpId op = begin; op < end; ++op) run_op(op, static_cast<int32_t>(b), chunk);
    }
  }

  void run_head() {
    for (OpId op = 0; op < static_cast<OpId>(graph_.ops.size()); ++op) {
      if (graph_.op(op).stage == Stage::kHead) run_op(op, kWholePass, 0);
    }
    const OpId last = graph_.tensor(graph_.logits).producer;
    const Placement& placement = table_.of(last, 0);
    slices_.set_context(Stage::kHead, -1, 0);
    out_.graph.logits =
        slices_.read_all(graph_.logits, kWholePass, table_.device(placement.parts.front()));
  }

  void run_op(OpId id, int32_t block, int32_t chunk) {
    const Op& op = graph_.op(id);
    const Placement& placement = table_.of(id, chunk);
    slices_.set_context(op.stage, op.layer, placement.delay_us);
    switch (op.kind) {
      case OpKind::kEmbed:
      case OpKind::kRopeTable:
      case OpKind::kRmsNorm:
      case OpKind::kAdd:
      case OpKind::kGatherRows:
        // Without an owner it is computed where it is needed, see want().
        if (const auto owner = sole_owner(placement, block)) light(id, block, *owner, true);
        break;
      case OpKind::kMatMul:
        product(id, block, placement);
        break;
      case OpKind::kRope:
      case OpKind::kSiluMul:
        follow(id, block, placement);
        break;
      case OpKind::kKvWrite:
        kv_write(id, block, placement);
        break;
      case OpKind::kAttention:
        attention(id, block, placement);
        break;
      case OpKind::kConcat:
        break;  // only cutting makes them
    }
  }

  // The device that computes a block whole; none if the placement cuts it.
  std::optional<int32_t> sole_owner(const Placement& placement, int32_t block) const {
    if (placement.parts.size() == 1) return table_.device(placement.parts.front());
    if (placement.cut != Cut::kActivationCentric || block == kWholePass) return std::nullopt;
    const Block& rows = out_.blocks[static_cast<size_t>(block)];
    const Range chunk = chunk_spans_[static_cast<size_t>(rows.chunk)];
    const size_t part =
        part_of_rows(placement, plan_, infos_, chunk.begin, chunk.size(), rows.begin);
    return table_.device(placement.parts[part]);
  }

  static std::vector<double> shares_of(const Placement& placement) {
    std::vector<double> shares;
    for (const Part& part : placement.parts) shares.push_back(part.share);
    return shares;
  }

  // ---- cheap operators

  // True if the device can compute this operator from sums and from what is at hand, with at most
  // `before` other cheap operators in a row before it: then it need not wait for another device to
  // do the same.
  bool may_recompute(OpId id, int32_t block, int32_t device, int before) const {
    const Op& op = graph_.op(id);
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
      if (slices_.has_partial_sums(input, block) || slices_.at_hand(input, block, device)) {
        return true;
      }
      const OpId producer = graph_.tensor(input).producer;
      return before > 0 && is_light(graph_.op(producer).kind) &&
             may_recompute(producer, block, device, before - 1);
    });
  }

  // Makes sure that a value computed on demand exists for this device.
  void want(TensorId tensor, int32_t block, int32_t device) {
    const OpId id = graph_.tensor(tensor).producer;
    if (!is_light(graph_.op(id).kind) || slices_.at_hand(tensor, block, device)) return;
    const bool exists = !slices_.of(tensor, block).empty();
    if (exists && !may_recompute(id, block, device, kMostRecomputed)) {
      return;  // another's copy will do
    }
    light(id, block, device, false);
  }

  TensorId read(TensorId tensor, int32_t block, int32_t device, Range columns) {
    want(tensor, block, device);
    return slices_.read(tensor, block, device, columns);
  }
  TensorId read_all(TensorId tensor, int32_t block, int32_t device) {
    return read(tensor, block, device, {0, slices_.width(tensor)});
  }

  void light(OpId id, int32_t block, int32_t device, bool for_all) {
    const Op& source = graph_.op(id);
    if (source.kind == OpKind::kGatherRows) return gather_rows(id, device, for_all);
    Op op = source;
    op.inputs.clear();
    for (const TensorId input : source.inputs) {
      const bool as_sums = source.kind == OpKind::kAdd && slices_.has_partial_sums(input, block) &&
                           !slices_.at_hand(input, block, device);
      if (!as_sums) {
        op.inputs.push_back(read_all(input, block, device));
        continue;
      }
      for (const Slice& slice : slices_.of(input, block)) {
        if (slice.partial) op.inputs.push_back(slice.tensor);
      }
    }
    op.output = light_output(source.output, block, device, for_all);
    slices_.emit(std::move(op), {device, block, false, 0});
  }

  TensorId light_output(TensorId tensor, int32_t block, int32_t device, bool for_all) {
    if (!for_all) return slices_.own_copy(tensor, block, device);
    return slices_.outputs(tensor, block, {{device, {0, slices_.width(tensor)}}}).front();
  }

  // Each block's wanted rows, into one tensor.
  void gather_rows(OpId id, int32_t device, bool for_all) {
    const Op& source = graph_.op(id);
    const TensorId output = light_output(source.output, kWholePass, device, for_all);
    for (size_t b = 0; b < out_.blocks.size(); ++b) {
      const auto block = static_cast<int32_t>(b);
      Op op = source;
      op.inputs = {read_all(source.inputs[0], block, device)};
      op.output = output;
      slices_.emit(std::move(op), {device, block, false, 0});
    }
  }

  // ---- products

  // Inputs that a product takes as its device's slice of the attention or of the MLP.
  bool takes_slices(const Op& op) const {
    const OpKind before = graph_.op(graph_.tensor(op.inputs[0]).producer).kind;
    return before == OpKind::kAttention || before == OpKind::kSiluMul;
  }

  std::optional<HeadUse> head_use(TensorId tensor) const {
    for (const OpId id : readers_[static_cast<size_t>(tensor)]) {
      const Op& op = graph_.op(id);
      if (op.kind == OpKind::kKvWrite) return HeadUse{op.heads.head_dim, true};
      if (op.kind == OpKind::kAttention) return HeadUse{op.heads.head_dim, false};
      if (op.kind == OpKind::kRope) return head_use(op.output);
    }
    return std::nullopt;
  }

  int64_t common_tile(const Placement& placement, int64_t device::DeviceInfo::*tile) const {
    int64_t common = 1;
    for (const Part& part : placement.parts) {
      common = std::lcm(common, infos_[static_cast<size_t>(table_.device(part))].*tile);
      if (common > kLargestGrain) return kLargestGrain;
    }
    return common;
  }

  // Multiples at which outputs or inputs are cut: the devices' tiles, unless that leaves too few.
  static int64_t grain(int64_t total, int64_t tile, int64_t least, size_t parts) {
    const int64_t whole = std::lcm(tile, least);
    return total >= whole * static_cast<int64_t>(parts) ? whole : least;
  }

  std::vector<Range> output_ranges(const Op& op, const Placement& placement) const {
    const std::vector<double> shares = shares_of(placement);
    const int64_t outputs = op.weight->rows;
    if (const auto use = head_use(op.output)) {
      const int64_t heads = outputs / use->head_dim;
      std::vector<Range> ranges;
      if (placement.op.empty()) {
        const HeadSplit both = split_heads(query_heads(op.layer), graph_.n_kv_heads, shares);
        ranges = use->is_kv ? both.kv : both.query;
      } else {
        ranges = split(heads, 1, shares);
      }
      for (Range& range : ranges) {
        range = {range.begin * use->head_dim, range.end * use->head_dim};
      }
      return ranges;
    }
    // What follows may take these columns as slices of its inputs.
    const int64_t tile = std::lcm(common_tile(placement, &device::DeviceInfo::n_tile),
                                  common_tile(placement, &device::DeviceInfo::k_tile));
    const int64_t least = outputs % kWeightBlock == 0 ? kWeightBlock : 1;
    return split(outputs, grain(outputs, std::min(tile, kLargestGrain), least, shares.size()),
                 shares);
  }

  int64_t query_heads(int32_t layer) const {
    const auto found = std::find_if(graph_.ops.begin(), graph_.ops.end(), [&](const Op& op) {
      return op.kind == OpKind::kAttention && op.layer == layer;
    });
    return found == graph_.ops.end() ? graph_.n_kv_heads : found->heads.n_heads;
  }

  void product(OpId id, int32_t block, const Placement& placement) {
    const Op& op = graph_.op(id);
    if (const auto owner = sole_owner(placement, block)) {
      return whole_product(op, block, *owner, stationary(placement, *owner));
    }
    if (placement.cut == Cut::kPaired && takes_slices(op)) {
      return slice_product(op, block, placement);
    }
    if (placement.cut == Cut::kK) {
      const int64_t inputs = op.weight->cols;
      const int64_t least = inputs % kWeightBlock == 0 ? kWeightBlock : 1;
      const int64_t tile = common_tile(placement, &device::DeviceInfo::k_tile);
      const auto shares = shares_of(placement);
      return partial_products(
          op, block, placement,
          to_specs(placement, split(inputs, grain(inputs, tile, least, shares.size()), shares)));
    }
    output_slices(op, block, placement);
  }

  bool stationary(const Placement& placement, int32_t device) const {
    for (const Part& part : placement.parts) {
      if (table_.device(part) == device) return part.input_stationary;
    }
    return false;
  }

  std::vector<SliceSpec> to_specs(const Placement& placement,
                                  const std::vector<Range>& ranges) const {
    std::vector<SliceSpec> specs;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (!ranges[i].empty()) specs.push_back({table_.device(placement.parts[i]), ranges[i]});
    }
    return specs;
  }

  void whole_product(const Op& source, int32_t block, int32_t device, bool input_stationary) {
    Op op = source;
    op.inputs = {read_all(source.inputs[0], block, device)};
    op.output = slices_.outputs(source.output, block, {{device, {0, source.weight->rows}}}).front();
    slices_.emit(std::move(op), {device, block, input_stationary, 0});
  }

  void output_slices(const Op& source, int32_t block, const Placement& placement) {
    const std::vector<SliceSpec> specs = to_specs(placement, output_ranges(source, placement));
    std::vector<TensorId> inputs;
    for (const SliceSpec& spec : specs) {
      inputs.push_back(read_all(source.inputs[0], block, spec.device));
    }
    const std::vector<TensorId> outputs = slices_.outputs(source.output, block, specs);
    for (size_t i = 0; i < specs.size(); ++i) {
      Op op = source;
      op.inputs = {inputs[i]};
      op.output = outputs[i];
      op.n_begin = specs[i].columns.begin;
      slices_.emit(std::move(op),
                   {specs[i].device, block, stationary(placement, specs[i].device), 0});
    }
  }

  // Along K on the slices that the devices hold already.
  void slice_product(const Op& source, int32_t block, const Placement& placement) {
    const std::vector<SliceSpec> held = slices_.shared(source.inputs[0], block);
    const int64_t weights = source.weight->cols % kWeightBlock == 0 ? kWeightBlock : 1;
    const bool aligned = std::all_of(held.begin(), held.end(), [&](const SliceSpec& spec) {
      return spec.columns.begin % weights == 0;
    });
    if (held.size() == 1) {
      return whole_product(source, block, held.front().device,
                           stationary(placement, held.front().device));
    }
    if (held.empty() || !aligned) return output_slices(source, block, placement);
    partial_products(source, block, placement, held);
  }

  void partial_products(const Op& source, int32_t block, const Placement& placement,
                        const std::vector<SliceSpec>& specs) {
    if (specs.size() == 1) {
      return whole_product(source, block, specs.front().device,
                           stationary(placement, specs.front().device));
    }
    for (const SliceSpec& spec : specs) {
      Op op = source;
      op.inputs = {read(source.inputs[0], block, spec.device, spec.columns)};
      op.output = slices_.partial_sum(source.output, block, spec.device);
      op.k_begin = spec.columns.begin;
      slices_.emit(std::move(op), {spec.device, block, stationary(placement, spec.device), 0});
    }
  }

  // ---- what is computed where its input is

  // The slices of a tensor; if it only exists as partial sums, all of it on the first device.
  std::vector<SliceSpec> places(TensorId tensor, int32_t block, const Placement& placement) const {
    std::vector<SliceSpec> specs = slices_.shared(tensor, block);
    if (specs.empty()) {
      specs.push_back({table_.device(placement.parts.front()), {0, slices_.width(tensor)}});
    }
    return specs;
  }

  void follow(OpId id, int32_t block, const Placement& placement) {
    const Op& source = graph_.op(id);
    const auto specs = places(source.inputs[0], block, placement);
    std::vector<std::vector<TensorId>> inputs;
    for (const SliceSpec& spec : specs) {
      inputs.push_back({read(source.inputs[0], block, spec.device, spec.columns)});
      // Of a RoPE table all, of a second factor the same columns.
      const TensorId other = source.inputs[1];
      inputs.back().push_back(source.kind == OpKind::kRope
                                  ? read_all(other, block, spec.device)
                                  : read(other, block, spec.device, spec.columns));
    }
    const auto outputs = slices_.outputs(source.output, block, specs);
    for (size_t i = 0; i < specs.size(); ++i) {
      Op op = source;
      op.inputs = inputs[i];
      op.output = outputs[i];
      if (source.kind == OpKind::kRope) take_heads(op.heads, specs[i].columns);
      slices_.emit(std::move(op), {specs[i].device, block, false, 0});
    }
  }

  static void take_heads(graph::HeadShape& heads, Range columns) {
    heads.first_head = columns.begin / heads.head_dim;
    heads.n_heads = columns.size() / heads.head_dim;
  }

  void kv_write(OpId id, int32_t block, const Placement& placement) {
    const Op& source = graph_.op(id);
    for (const SliceSpec& spec : places(source.inputs[0], block, placement)) {
      Op op = source;
      op.inputs = {read(source.inputs[0], block, spec.device, spec.columns),
                   read(source.inputs[1], block, spec.device, spec.columns)};
      op.output = slices_.order(source.output, block);
      take_heads(op.heads, spec.columns);
      slices_.emit(std::move(op), {spec.device, block, false, 0});
    }
  }

  void attention(OpId id, int32_t block, const Placement& placement) {
    const Op& source = graph_.op(id);
    const int64_t head_dim = source.heads.head_dim;
    std::vector<SliceSpec> specs;
    if (const auto owner = sole_owner(placement, block)) {
      specs.push_back({*owner, {0, slices_.width(source.output)}});
    } else if (placement.cut == Cut::kPaired) {
      specs = places(source.inputs[0], block, placement);
    } else {
      std::vector<Range> heads = split(source.heads.n_heads, 1, shares_of(placement));
      for (Range& range : heads) range = {range.begin * head_dim, range.end * head_dim};
      specs = to_specs(placement, heads);
    }
    std::vector<TensorId> inputs;
    for (const SliceSpec& spec : specs) {
      inputs.push_back(read(source.inputs[0], block, spec.device, spec.columns));
    }
    const auto outputs = slices_.outputs(source.output, block, specs);
    for (size_t i = 0; i < specs.size(); ++i) {
      Op op = source;
      // The KV cache is not an edge of one tensor: lowering orders writers and readers of it.
      op.inputs = {inputs[i]};
      op.output = outputs[i];
      take_heads(op.heads, specs[i].columns);
      slices_.emit(std::move(op), {specs[i].device, block, false, 0});
    }
  }

  const Plan& plan_;
  const RowsBucket& bucket_;
  const graph::Graph& graph_;
  std::span<const device::DeviceInfo> infos_;
  PlacementTable table_;
  Slices slices_;
  CutGraph& out_;
  std::vector<std::vector<OpId>> readers_;  // by tensor
  std::vector<Range> chunk_spans_;          // rows
};

}  // namespace

Result<CutGraph> cut(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                     int64_t rows, int64_t max_logit_rows,
                     std::span<const device::DeviceInfo> infos) {
  CutGraph out;
  out.graph.model = graph.model;
  out.graph.n_layers = graph.n_layers;
  out.graph.n_kv_heads = graph.n_kv_heads;
  out.graph.head_dim = graph.head_dim;
  out.graph.n_vocab = graph.n_vocab;
  out.graph.rope_inv_freq = graph.rope_inv_freq;
  ASSIGN_OR_RETURN(out.blocks, cut_rows(plan, bucket, rows, infos));
  Cutter(plan, bucket, graph, max_logit_rows, infos, out).run();
  return out;
}

}  // namespace troika::plan
