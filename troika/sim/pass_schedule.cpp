#include "troika/sim/pass_schedule.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>

#include "troika/plan/lower.h"
#include "troika/plan/rows.h"
#include "troika/plan/steps.h"
#include "troika/sim/operator_cost.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/pass_tasks.h"

namespace troika::sim {
namespace {

using graph::Op;
using graph::OpId;
using graph::OpKind;

constexpr int32_t kLayerStages = 3;
constexpr std::array kStageOf = {graph::Stage::kG1, graph::Stage::kAttention, graph::Stage::kG2};

// Layers whose operators have the same shapes and stored types.
bool alike(const graph::Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](OpId x, OpId y) {
    const Op& one = graph.op(x);
    const Op& other = graph.op(y);
    const bool same_weight = (one.weight == nullptr) == (other.weight == nullptr) &&
                             (one.weight == nullptr || (one.weight->type == other.weight->type &&
                                                        one.weight->rows == other.weight->rows &&
                                                        one.weight->cols == other.weight->cols));
    return one.kind == other.kind && same_weight &&
           graph.tensor(one.output).width == graph.tensor(other.output).width &&
           one.heads.n_heads == other.heads.n_heads && one.heads.group == other.heads.group;
  });
}

bool same_deps(const CutStage& a, const CutStage& b, int32_t shift) {
  return std::equal(a.deps.begin(), a.deps.end(), b.deps.begin(), b.deps.end(),
                    [&](const OpRef& x, OpRef y) {
                      if (!y.fixed) y.position -= shift;
                      return x == y;
                    });
}

// What is compared does not include names: the same stage one layer later.
bool same_stage(const CutStage& a, const CutStage& b, int32_t shift) {
  return same_deps(a, b, shift) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const CutOp& x, const CutOp& y) {
                      return x.kind == y.kind && x.device == y.device && x.n == y.n && x.k == y.k &&
                             x.width == y.width && x.heads == y.heads &&
                             x.head_width == y.head_width && x.weight_bits == y.weight_bits &&
                             x.input_stationary == y.input_stationary && x.delay_us == y.delay_us &&
                             x.n_deps == y.n_deps;
                    });
}

struct ProductKey {
  int32_t device = 0;
  int64_t rows = 0;
  int64_t n = 0;
  int64_t k = 0;
  double bits = 0;
  bool input_stationary = false;
  auto operator<=>(const ProductKey&) const = default;
};

}  // namespace

// Blocks that are cut alike: the stages of one of them.
struct BlockKind {
  int32_t chunk = 0;
  std::vector<size_t> owners;  // parts that own it, by placement; of those cut along the rows
  bool one_row = false;
  std::vector<std::unique_ptr<CutStage>> stages;
  std::vector<std::pair<const CutStage*, int32_t>> by_position;  // and the shift
  PassCutter::Memory memory;
};

struct PassScheduler::State {
  State(const graph::Graph& g, const cost::CostModel& c, std::vector<device::DeviceInfo> i,
        LoweredOptions o)
      : graph(g), cost(c), infos(std::move(i)), options(std::move(o)) {
    for (const device::DeviceInfo& info : infos) plan.devices.push_back(info.name);
    ranges = std::make_unique<plan::ProductRanges>(graph, plan.devices, infos);
    cutter = std::make_unique<PassCutter>(graph, infos, plan.devices, *ranges, options);
    const auto layers = static_cast<int32_t>(graph.n_layers);
    positions = 2 + kLayerStages * layers;
    ops.resize(static_cast<size_t>(positions));
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      const Op& op = graph.ops[id];
      ops[static_cast<size_t>(position_of(op.stage, op.layer))].push_back(static_cast<OpId>(id));
      names.push_back(op.kind == OpKind::kMatMul ? plan::product_name(graph, static_cast<OpId>(id))
                                                 : std::string_view());
    }
    for (int32_t layer = 0; layer + 1 < layers; ++layer) {
      bool same = true;
      for (int32_t stage = 0; stage < kLayerStages; ++stage) {
        const auto position = static_cast<size_t>(1 + kLayerStages * layer + stage);
        same = same && alike(graph, ops[position], ops[position + kLayerStages]);
      }
      like_next.push_back(same);
    }
    like_next.push_back(false);
    options.devices.resize(infos.size());
    std::iota(options.devices.begin(), options.devices.end(), size_t{0});
    set_chip(cost, options.devices, chip);
    for (const size_t device : options.devices) facts.push_back(cost.run_facts(device));
    grouper = std::make_unique<PassGrouper>(infos, positions);
  }

  int32_t position_of(graph::Stage stage, int32_t layer) const {
    switch (stage) {
      case graph::Stage::kInput:
        return 0;
      case graph::Stage::kHead:
        return positions - 1;
      case graph::Stage::kG1:
        return 1 + kLayerStages * layer;
      case graph::Stage::kAttention:
        return 2 + kLayerStages * layer;
      case graph::Stage::kG2:
        return 3 + kLayerStages * layer;
    }
    return 0;
  }

  const plan::Placement* placement(const plan::RowsBucket& bucket, OpId id, int32_t chunk) const {
    const Op& op = graph.op(id);
    const plan::Placement* best = nullptr;
    int best_rank = -1;
    for (const plan::Placement& one : bucket.placements) {
      if (one.stage != op.stage || op.layer < one.first_layer || op.layer > one.last_layer)
        continue;
      if (one.chunk >= 0 && one.chunk != chunk) continue;
      const int rank = plan::rank(one);
      if (rank <= best_rank || (!one.op.empty() && one.op != names[static_cast<size_t>(id)])) {
        continue;
      }
      best = &one;
      best_rank = rank;
    }
    return best;
  }

  Decision decide(const plan::RowsBucket& bucket, OpId id, const BlockKind& kind) const {
    Decision decision;
    decision.placement = placement(bucket, id, kind.chunk);
    const plan::Placement& own = *decision.placement;
    size_t part = own.parts.size() == 1 ? 0 : own.parts.size();
    if (part > 0 && own.cut == plan::Cut::kActivationCentric && !kind.owners.empty()) {
      part = kind.owners[static_cast<size_t>(&own - bucket.placements.data())];
    }
    if (part >= own.parts.size()) return decision;
    decision.owner = plan::device_index(plan.devices, own.parts[part]);
    return decision;
  }

  BlockKind& kind_of(const plan::RowsBucket& bucket, const plan::Block& block, plan::Range chunk);
  void cut_block(const plan::RowsBucket& bucket, BlockKind& kind);
  Status cut_pass(const plan::RowsBucket& bucket, int64_t rows);
  Status fill(int64_t rows, PassSchedule& out);
  Status add_stage(const CutInstance& instance, int64_t rows);
  void add_switches(const CutInstance& instance, const CutOp& op, int32_t path, size_t task);
  std::optional<cost::Estimate> estimate(const CutOp& op, const TaskGroup& task, bool head,
                                         int64_t rows);
  Status by_lowering(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) const;

  const graph::Graph& graph;
  const cost::CostModel& cost;
  std::vector<device::DeviceInfo> infos;
  LoweredOptions options;
  plan::Plan plan;  // for the names of devices
  std::unique_ptr<plan::ProductRanges> ranges;
  std::unique_ptr<PassCutter> cutter;
  std::unique_ptr<PassGrouper> grouper;
  int32_t positions = 0;
  std::vector<std::vector<OpId>> ops;   // by position
  std::vector<std::string_view> names;  // by operator; empty unless a product
  std::vector<bool> like_next;          // by layer
  Schedule chip;                        // without tasks
  std::vector<cost::RunFacts> facts;

  // Of the bucket at hand.
  std::vector<plan::Block> blocks;
  std::vector<std::unique_ptr<BlockKind>> kinds;
  std::vector<bool> border;  // by layer: other placements hold from here on
  CutStage head;
  std::vector<CutInstance> instances;
  int32_t n_stages = 0;  // that were cut; the head is number 0
  std::map<ProductKey, std::optional<cost::Estimate>> products;
  // Of the operators of a stage on the rows of a block.
  struct StageCost {
    bool known = false;
    std::vector<std::pair<Needed, int32_t>> work;  // and the path of a product
  };
  std::vector<StageCost> stage_costs;  // by stage and block
  std::vector<Needed> needed;          // by task
  std::vector<double> switches_us;     // by task
  std::vector<Place> last_product;     // by device
};

BlockKind& PassScheduler::State::kind_of(const plan::RowsBucket& bucket, const plan::Block& block,
                                         plan::Range chunk) {
  auto kind = std::make_unique<BlockKind>();
  kind->one_row = block.padded == 1;
  kind->chunk = -1;
  bool by_rows = false;
  for (const plan::Placement& one : bucket.placements) {
    if (one.chunk == block.chunk) kind->chunk = block.chunk;
    by_rows = by_rows || one.cut == plan::Cut::kActivationCentric;
  }
  for (const plan::Placement& one : bucket.placements) {
    if (!by_rows) break;
    const bool own = one.cut == plan::Cut::kActivationCentric;
    kind->owners.push_back(
        own ? plan::part_of_rows(one, plan, infos, chunk.begin, chunk.size(), block.begin) : 0);
  }
  for (const auto& known : kinds) {
    const bool same = known->one_row == kind->one_row && known->chunk == kind->chunk &&
                      known->owners == kind->owners;
    if (same) return *known;
  }
  kinds.push_back(std::move(kind));
  cut_block(bucket, *kinds.back());
  return *kinds.back();
}

void PassScheduler::State::cut_block(const plan::RowsBucket& bucket, BlockKind& kind) {
  const auto decision = [&](OpId id) { return decide(bucket, id, kind); };
  const auto cut = [&](int32_t position) {
    kind.stages.push_back(std::make_unique<CutStage>());
    kind.stages.back()->number = ++n_stages;
    cutter->cut(position, ops[static_cast<size_t>(position)], decision, *kind.stages.back());
    kind.by_position[static_cast<size_t>(position)] = {kind.stages.back().get(), 0};
  };
  kind.by_position.assign(static_cast<size_t>(positions), {nullptr, 0});
  cutter->begin(kind.one_row);
  cut(0);
  const auto layers = static_cast<int32_t>(graph.n_layers);
  const auto like_before = [&](int32_t layer) {
    return like_next[static_cast<size_t>(layer - 1)] && !border[static_cast<size_t>(layer)];
  };
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t first = 1 + kLayerStages * layer;
    bool repeats = layer > 0 && like_before(layer);
    for (int32_t stage = 0; stage < kLayerStages; ++stage) {
      cut(first + stage);
      repeats = repeats && kind.by_position[static_cast<size_t>(first + stage - 3)].second == 0 &&
                same_stage(*kind.by_position[static_cast<size_t>(first + stage - 3)].first,
                           *kind.by_position[static_cast<size_t>(first + stage)].first, 3);
    }
    if (!repeats) continue;
    int32_t last = layer;
    while (last + 1 < layers && like_before(last + 1)) ++last;
    if (last == layer) continue;
    for (int32_t position = first + 3; position < 1 + kLayerStages * (last + 1); ++position) {
      const int32_t stage = (position - 1) % kLayerStages;
      kind.by_position[static_cast<size_t>(position)] = {
          kind.by_position[static_cast<size_t>(first + stage)].first, position - first - stage};
    }
    cutter->skip(layer, last);
    layer = last;
  }
  kind.memory = cutter->save();
}

Status PassScheduler::State::cut_pass(const plan::RowsBucket& bucket, int64_t rows) {
  ASSIGN_OR_RETURN(plan::RowCut row_cut, plan::cut_rows(plan, bucket, rows, infos));
  blocks = std::move(row_cut.blocks);
  const int32_t chunks = plan::chunk_count(bucket, rows);
  ASSIGN_OR_RETURN(
      const std::vector<plan::Step> steps,
      plan::order_steps(plan, bucket, static_cast<int32_t>(graph.n_layers), chunks, row_cut.apart));
  border.assign(static_cast<size_t>(graph.n_layers) + 1, false);
  for (const plan::Placement& one : bucket.placements) {
    if (one.first_layer < 0) continue;
    border[static_cast<size_t>(one.first_layer)] = true;
    border[static_cast<size_t>(one.last_layer) + 1] = true;
  }
  kinds.clear();
  n_stages = 0;
  cutter->begin_pass();
  std::vector<plan::Range> rows_of_chunk(static_cast<size_t>(chunks), {rows, 0});
  std::vector<std::vector<int32_t>> of_chunk(static_cast<size_t>(chunks));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto chunk = static_cast<size_t>(blocks[b].chunk);
    rows_of_chunk[chunk].begin = std::min(rows_of_chunk[chunk].begin, blocks[b].begin);
    rows_of_chunk[chunk].end = std::max(rows_of_chunk[chunk].end, blocks[b].end());
    of_chunk[chunk].push_back(static_cast<int32_t>(b));
  }
  std::vector<const BlockKind*> kind;
  std::vector<PassCutter::Memory> memories;
  for (const plan::Block& block : blocks) {
    kind.push_back(&kind_of(bucket, block, rows_of_chunk[static_cast<size_t>(block.chunk)]));
    memories.push_back(kind.back()->memory);
  }
  instances.clear();
  for (const plan::Step& step : steps) {
    const int32_t position = position_of(step.stage, step.layer);
    for (const int32_t block : of_chunk[static_cast<size_t>(step.chunk)]) {
      const auto& [stage, shift] =
          kind[static_cast<size_t>(block)]->by_position[static_cast<size_t>(position)];
      instances.push_back({block, position, stage, shift, 0});
    }
  }
  BlockKind of_head;
  std::vector<Decision> decisions;
  const auto& head_ops = ops[static_cast<size_t>(positions) - 1];
  for (const OpId id : head_ops) decisions.push_back(decide(bucket, id, of_head));
  const plan::Part& last = placement(bucket, graph.tensor(graph.logits).producer, 0)->parts.front();
  const int64_t wanted = std::min(options.logit_rows, rows);
  cutter->cut_head(memories, wanted == 1, positions - 1, head_ops, decisions,
                   plan::device_index(plan.devices, last), head);
  instances.push_back({kHeadBlock, positions - 1, &head, 0, 0});
  return {};
}

std::optional<cost::Estimate> PassScheduler::State::estimate(const CutOp& op, const TaskGroup& task,
                                                             bool is_head, int64_t rows) {
  const auto device = static_cast<size_t>(op.device);
  int64_t begin = 0;
  int64_t count = rows;
  if (task.block >= 0) {
    begin = blocks[static_cast<size_t>(task.block)].begin;
    count = blocks[static_cast<size_t>(task.block)].rows;
  }
  const double keys =
      static_cast<double>(options.depth + begin) + (static_cast<double>(count) + 1) / 2;
  if (is_head) count = std::min(options.logit_rows, rows);
  if (op.kind == OpKind::kMatMul) {
    const int64_t padded = computed_rows(options, device, count);
    const ProductKey key{op.device, padded, op.n, op.k, op.weight_bits, op.input_stationary};
    const auto [found, is_new] = products.try_emplace(key);
    if (is_new) {
      found->second =
          product_cost(cost, device, padded, op.n, op.k, op.weight_bits, op.input_stationary);
    }
    return found->second;
  }
  const double width_bytes = options.activation_bits > 0
                                 ? static_cast<double>(op.width) * (options.activation_bits / 8)
                                 : op.width_bytes;
  const double moved = width_bytes * static_cast<double>(count);
  if (op.kind != OpKind::kAttention) return cost.elementwise(device, moved);
  return attention_cost(cost, device, count, keys, op.head_width, op.group, moved);
}

void PassScheduler::State::add_switches(const CutInstance& instance, const CutOp& op, int32_t path,
                                        size_t task) {
  const auto device = static_cast<size_t>(op.device);
  const cost::RunFacts& own = facts[device];
  if (own.datapath_switch_us == 0 && own.weights_switch_us == 0) return;
  // The same product of another layer is another weight; layers have theirs in the same order.
  const auto cut_at = static_cast<size_t>(instance.position - instance.shift);
  const int64_t number = op.product - ops[cut_at].front();
  const Place next{path, (int64_t{instance.position} << 32) + number};
  switches_us[task] += switch_us(own, last_product[device], next);
  last_product[device] = next;
}

Status PassScheduler::State::add_stage(const CutInstance& instance, int64_t rows) {
  const bool is_head = instance.block == kHeadBlock;
  const size_t block = is_head ? 0 : static_cast<size_t>(instance.block);
  StageCost& known =
      stage_costs[static_cast<size_t>(instance.stage->number) * blocks.size() + block];
  for (size_t i = 0; i < instance.stage->ops.size(); ++i) {
    const auto task =
        static_cast<size_t>(grouper->task_of(instance.first_op + static_cast<int32_t>(i)));
    const CutOp& op = instance.stage->ops[i];
    if (!known.known) {
      const auto work = estimate(op, grouper->tasks()[task], is_head, rows);
      if (!work) {
        return make_error(ErrorCode::kUnsupported, "{} cannot have {}",
                          cost.devices()[static_cast<size_t>(op.device)].name, to_string(op.kind));
      }
      Needed one;
      one.add(*work, facts[static_cast<size_t>(op.device)]);
      known.work.emplace_back(one, work->path);
    }
    needed[task].add(known.work[i].first);
    if (known.work[i].second >= 0) add_switches(instance, op, known.work[i].second, task);
  }
  known.known = true;
  return {};
}

Status PassScheduler::State::fill(int64_t rows, PassSchedule& out) {
  const auto& tasks = grouper->tasks();
  needed.assign(tasks.size(), {});
  switches_us.assign(tasks.size(), 0);
  last_product.assign(infos.size(), {});
  for (StageCost& one : stage_costs) {
    one.known = false;
    one.work.clear();
  }
  stage_costs.resize((static_cast<size_t>(n_stages) + 1) * blocks.size());
  for (const CutInstance& instance : instances) RETURN_IF_ERROR(add_stage(instance, rows));
  Schedule& schedule = out.schedule;
  schedule.n_devices = chip.n_devices;
  schedule.shared_gbps = chip.shared_gbps;
  schedule.runs = chip.runs;
  schedule.idle_w = chip.idle_w;
  schedule.turbo_mj = chip.turbo_mj;
  schedule.waits = grouper->waits();
  schedule.tasks.clear();
  out.places.clear();
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskGroup& from = tasks[t];
    Task task;
    task.device = from.device;
    task.first_wait = from.first_wait;
    task.n_waits = from.n_waits;
    const auto delay = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(from.delay_us));
    task.delay_us = static_cast<float>(to_us(delay));
    const auto device = static_cast<size_t>(from.device);
    set_work(cost, device, options.sync, needed[t], switches_us[t], task);
    schedule.tasks.push_back(task);
    const int32_t position = instances[static_cast<size_t>(from.instance)].position;
    TaskPlace place;
    place.chunk = from.block >= 0 ? blocks[static_cast<size_t>(from.block)].chunk : 0;
    place.stage = position == 0               ? graph::Stage::kInput
                  : position == positions - 1 ? graph::Stage::kHead
                                              : kStageOf[static_cast<size_t>((position - 1) % 3)];
    place.layer = position == 0 || position == positions - 1 ? -1 : (position - 1) / 3;
    out.places.push_back(place);
  }
  return check(schedule);
}

Status PassScheduler::State::by_lowering(const plan::RowsBucket& bucket, int64_t rows,
                                         PassSchedule& out) const {
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(plan, bucket, graph, rows, options.logit_rows, infos));
  ASSIGN_OR_RETURN(out.schedule, schedule_from(list, cost, options));
  out.places.clear();
  for (const plan::Task& task : list.tasks) {
    const bool whole = task.block == plan::kWholePass;
    const int32_t chunk = whole ? 0 : list.cut->blocks[static_cast<size_t>(task.block)].chunk;
    out.places.push_back({task.stage, task.layer, chunk});
  }
  return {};
}

PassScheduler::PassScheduler(const graph::Graph& graph, const cost::CostModel& cost,
                             std::vector<device::DeviceInfo> infos, LoweredOptions options)
    : state_(std::make_unique<State>(graph, cost, std::move(infos), std::move(options))) {}

PassScheduler::~PassScheduler() = default;

Status PassScheduler::build(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) {
  // Values of joined chunks go from one partition of the rows to another.
  const bool joins = std::any_of(bucket.placements.begin(), bucket.placements.end(),
                                 [](const plan::Placement& one) { return one.join_chunks > 1; });
  if (joins) return state_->by_lowering(bucket, rows, out);
  RETURN_IF_ERROR(state_->cut_pass(bucket, rows));
  if (!state_->cutter->sound()) return state_->by_lowering(bucket, rows, out);
  RETURN_IF_ERROR(state_->grouper->run(state_->instances, state_->blocks,
                                       std::min(state_->options.logit_rows, rows)));
  return state_->fill(rows, out);
}

}  // namespace troika::sim
