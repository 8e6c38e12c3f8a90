#include "troika/sim/pass_schedule.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "troika/plan/lower.h"
#include "troika/plan/rows.h"
#include "troika/plan/steps.h"
#include "troika/sim/operator_cost.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/pass_layout.h"
#include "troika/sim/pass_tasks.h"

namespace troika::sim {
namespace {

using graph::Op;
using graph::OpId;
using graph::OpKind;

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
                             x.n_begin == y.n_begin && x.k_begin == y.k_begin &&
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
  std::vector<std::pair<const CutStage*, int32_t>> by_position;  // and the shift
  PassCutter::Memory memory;
};

// Objects that are used again and again, each with the memory that it got before.
template <class T>
class Pool {
 public:
  void reset() { used_ = 0; }
  T& next() {
    if (used_ == all_.size()) all_.push_back(std::make_unique<T>());
    return *all_[used_++];
  }
  void give_back() { --used_; }
  size_t size() const { return used_; }
  T& operator[](size_t i) { return *all_[i]; }

 private:
  std::vector<std::unique_ptr<T>> all_;
  size_t used_ = 0;
};

struct PassScheduler::State {
  State(const graph::Graph& g, const cost::CostModel& c, std::vector<device::DeviceInfo> i,
        LoweredOptions o)
      : graph(g), cost(c), infos(std::move(i)), options(std::move(o)) {
    for (const device::DeviceInfo& info : infos) plan.devices.push_back(info.name);
    ranges = std::make_unique<plan::ProductRanges>(graph, plan.devices, infos);
    for (size_t id = 0; id < graph.ops.size(); ++id) {
      names.push_back(graph.ops[id].kind == OpKind::kMatMul
                          ? plan::product_name(graph, static_cast<OpId>(id))
                          : std::string_view());
    }
    turn_counts = plan::turn_counts(graph);
    by_stages = layout_of(graph, false);
    by_turns = layout_of(graph, true);
    for (std::optional<Layout>* const one : {&by_stages, &by_turns}) {
      if (!*one) continue;
      Layout& own = **one;
      own.cutter =
          std::make_unique<PassCutter>(graph, infos, plan.devices, *ranges, options, own.of_layer);
      own.grouper = std::make_unique<PassGrouper>(infos, own.positions, own.of_layer);
    }
    options.devices.resize(infos.size());
    std::iota(options.devices.begin(), options.devices.end(), size_t{0});
    set_chip(cost, options.devices, chip);
    for (const size_t device : options.devices) {
      facts.push_back(cost.run_facts(device));
      switches =
          switches || facts.back().datapath_switch_us > 0 || facts.back().weights_switch_us > 0;
    }
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
  Status order(const plan::RowsBucket& bucket, int32_t chunks, const std::vector<bool>& apart);
  Status cut_pass(const plan::RowsBucket& bucket, int64_t rows);
  struct StageCost;
  Result<const StageCost*> cost_of(const CutInstance& instance, int64_t rows);
  Status add_work(int64_t rows);
  double switch_to(const CutInstance& instance, const CutOp& op, int32_t path);
  TaskPlace place_of(const TaskGroup& task) const;
  Status fill(int64_t rows, PassSchedule& out);
  std::optional<cost::Estimate> estimate(const CutOp& op, const TaskGroup& task, bool head,
                                         int64_t rows);
  Status by_lowering(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out) const;

  const graph::Graph& graph;
  const cost::CostModel& cost;
  std::vector<device::DeviceInfo> infos;
  LoweredOptions options;
  plan::Plan plan;  // for the names of devices
  std::unique_ptr<plan::ProductRanges> ranges;
  std::optional<Layout> by_stages;
  std::optional<Layout> by_turns;
  const Layout* layout = nullptr;       // of the bucket at hand
  std::vector<int32_t> turn_counts;     // see plan::turn_counts()
  std::vector<std::string_view> names;  // by operator; empty unless a product
  Schedule chip;                        // without tasks
  std::vector<cost::RunFacts> facts;
  bool switches = false;  // some device takes time to go from one product to another

  // Of the bucket at hand.
  bool lowered = true;
  struct OrderKey {
    plan::OrderRule rule;
    int64_t in_flight;
    int32_t lag;
    int32_t chunks;
    bool operator==(const OrderKey&) const = default;
  };
  std::optional<OrderKey> ordered;  // what `steps` are of
  std::vector<plan::Step> steps;
  std::vector<plan::Block> blocks;
  Pool<BlockKind> kinds;
  Pool<CutStage> stages;                     // numbered from 1; the head is number 0
  std::vector<PassCutter::Memory> memories;  // by block
  std::vector<bool> border;                  // by layer: other placements hold from here on
  CutStage head;
  std::vector<CutInstance> instances;
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
  BlockKind& kind = kinds.next();
  kind.one_row = block.padded == 1;
  kind.chunk = -1;
  kind.owners.clear();
  bool by_rows = false;
  for (const plan::Placement& one : bucket.placements) {
    if (one.chunk == block.chunk) kind.chunk = block.chunk;
    by_rows = by_rows || one.cut == plan::Cut::kActivationCentric;
  }
  for (const plan::Placement& one : bucket.placements) {
    if (!by_rows) break;
    const bool own = one.cut == plan::Cut::kActivationCentric;
    kind.owners.push_back(
        own ? plan::part_of_rows(one, plan, infos, chunk.begin, chunk.size(), block.begin) : 0);
  }
  for (size_t i = 0; i + 1 < kinds.size(); ++i) {
    const bool same = kinds[i].one_row == kind.one_row && kinds[i].chunk == kind.chunk &&
                      kinds[i].owners == kind.owners;
    if (!same) continue;
    kinds.give_back();
    return kinds[i];
  }
  cut_block(bucket, kind);
  return kind;
}

void PassScheduler::State::cut_block(const plan::RowsBucket& bucket, BlockKind& kind) {
  const auto decision = [&](OpId id) { return decide(bucket, id, kind); };
  const auto cut = [&](int32_t position) {
    CutStage& stage = stages.next();
    stage.number = static_cast<int32_t>(stages.size());
    layout->cutter->cut(position, layout->ops[static_cast<size_t>(position)], decision, stage);
    kind.by_position[static_cast<size_t>(position)] = {&stage, 0};
  };
  const int32_t of_layer = layout->of_layer;
  kind.by_position.assign(static_cast<size_t>(layout->positions), {nullptr, 0});
  layout->cutter->begin(kind.one_row);
  cut(0);
  const auto layers = static_cast<int32_t>(graph.n_layers);
  const auto like_before = [&](int32_t layer) {
    return layout->like_next[static_cast<size_t>(layer - 1)] && !border[static_cast<size_t>(layer)];
  };
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t first = layout->begin_of(layer);
    bool repeats = layer > 0 && like_before(layer);
    for (int32_t position = first; position < first + of_layer; ++position) {
      cut(position);
      if (!repeats) continue;
      const auto& [before, shift] = kind.by_position[static_cast<size_t>(position - of_layer)];
      repeats =
          shift == 0 &&
          same_stage(*before, *kind.by_position[static_cast<size_t>(position)].first, of_layer);
    }
    if (!repeats) continue;
    int32_t last = layer;
    while (last + 1 < layers && like_before(last + 1)) ++last;
    if (last == layer) continue;
    for (int32_t position = first + of_layer; position < layout->begin_of(last + 1); ++position) {
      const int32_t like = first + (position - first) % of_layer;
      kind.by_position[static_cast<size_t>(position)] = {
          kind.by_position[static_cast<size_t>(like)].first, position - like};
    }
    layout->cutter->skip(layer, last);
    layer = last;
  }
  layout->cutter->save(kind.memory);
}

// The steps, which most edits leave as they are: without a list, a rule knows chunks and window
// only.
Status PassScheduler::State::order(const plan::RowsBucket& bucket, int32_t chunks,
                                   const std::vector<bool>& apart) {
  const OrderKey key{bucket.order_rule, bucket.in_flight, bucket.lag, chunks};
  if (bucket.order.empty() && ordered == key) return {};
  ASSIGN_OR_RETURN(steps, plan::order_steps(plan, bucket, static_cast<int32_t>(graph.n_layers),
                                            chunks, apart, turn_counts));
  ordered = bucket.order.empty() ? std::optional(key) : std::nullopt;
  return {};
}

Status PassScheduler::State::cut_pass(const plan::RowsBucket& bucket, int64_t rows) {
  ASSIGN_OR_RETURN(plan::RowCut row_cut, plan::cut_rows(plan, bucket, rows, infos));
  blocks = std::move(row_cut.blocks);
  const int32_t chunks = plan::chunk_count(bucket, rows);
  RETURN_IF_ERROR(order(bucket, chunks, row_cut.apart));
  border.assign(static_cast<size_t>(graph.n_layers) + 1, false);
  for (const plan::Placement& one : bucket.placements) {
    if (one.first_layer < 0) continue;
    border[static_cast<size_t>(one.first_layer)] = true;
    border[static_cast<size_t>(one.last_layer) + 1] = true;
  }
  kinds.reset();
  stages.reset();
  std::vector<plan::Range> rows_of_chunk(static_cast<size_t>(chunks), {rows, 0});
  std::vector<std::vector<int32_t>> of_chunk(static_cast<size_t>(chunks));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto chunk = static_cast<size_t>(blocks[b].chunk);
    rows_of_chunk[chunk].begin = std::min(rows_of_chunk[chunk].begin, blocks[b].begin);
    rows_of_chunk[chunk].end = std::max(rows_of_chunk[chunk].end, blocks[b].end());
    of_chunk[chunk].push_back(static_cast<int32_t>(b));
  }
  const bool turns =
      (bucket.order.empty() && bucket.order_rule == plan::OrderRule::kProducts) ||
      std::any_of(of_chunk.begin(), of_chunk.end(), [](const auto& own) { return own.size() > 1; });
  const auto& wanted_layout = turns ? by_turns : by_stages;
  layout = wanted_layout ? &*wanted_layout : nullptr;
  if (layout == nullptr) return {};
  layout->cutter->begin_pass();
  std::vector<const BlockKind*> kind;
  memories.resize(blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto chunk = static_cast<size_t>(blocks[b].chunk);
    kind.push_back(&kind_of(bucket, blocks[b], rows_of_chunk[chunk]));
    memories[b] = kind.back()->memory;
  }
  instances.clear();
  int32_t number = 0;
  for (const plan::Step& step : steps) {
    plan::Range range = layout->range_of(step.stage, step.layer);
    if (step.turn >= 0) range = {range.begin + step.turn, range.begin + step.turn + 1};
    for (auto position = static_cast<int32_t>(range.begin); position < range.end; ++position) {
      for (const int32_t block : of_chunk[static_cast<size_t>(step.chunk)]) {
        const auto& [stage, shift] =
            kind[static_cast<size_t>(block)]->by_position[static_cast<size_t>(position)];
        instances.push_back({block, position, number, stage, shift, 0, false});
      }
    }
    ++number;
  }
  const int32_t last_position = layout->positions - 1;
  BlockKind of_head;
  std::vector<Decision> decisions;
  const auto& head_ops = layout->ops.back();
  for (const OpId id : head_ops) decisions.push_back(decide(bucket, id, of_head));
  const plan::Part& last = placement(bucket, graph.tensor(graph.logits).producer, 0)->parts.front();
  const int64_t wanted = std::min(options.logit_rows, rows);
  layout->cutter->cut_head(memories, wanted == 1, last_position, head_ops, decisions,
                           plan::device_index(plan.devices, last), head);
  instances.push_back({kHeadBlock, last_position, number, &head, 0, 0, false});
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

// From the last product on the operator's device to it, us.
double PassScheduler::State::switch_to(const CutInstance& instance, const CutOp& op, int32_t path) {
  const auto device = static_cast<size_t>(op.device);
  const cost::RunFacts& own = facts[device];
  if (own.datapath_switch_us == 0 && own.weights_switch_us == 0) return 0;
  // The same product of another layer is another weight; layers have theirs in the same order.
  const auto cut_at = static_cast<size_t>(instance.position - instance.shift);
  const int64_t number = op.product - layout->ops[cut_at].front();
  const Place next{path, (int64_t{instance.position} << 32) + number, op.n_begin, op.n, op.k_begin,
                   op.k};
  const double us = switch_us(own, last_product[device], next);
  last_product[device] = next;
  return us;
}

// What the operators of an instance need. Blocks of as many rows differ in attention alone.
Result<const PassScheduler::State::StageCost*> PassScheduler::State::cost_of(
    const CutInstance& instance, int64_t rows) {
  const bool is_head = instance.block == kHeadBlock;
  const size_t block = is_head ? 0 : static_cast<size_t>(instance.block);
  StageCost* const all = &stage_costs[static_cast<size_t>(instance.stage->number) * blocks.size()];
  StageCost& own = all[block];
  if (own.known) return &own;
  const StageCost* like = nullptr;
  for (size_t b = 0; b < blocks.size() && !is_head; ++b) {
    if (all[b].known && blocks[b].rows == blocks[block].rows) like = &all[b];
  }
  for (size_t i = 0; i < instance.stage->ops.size(); ++i) {
    const CutOp& op = instance.stage->ops[i];
    if (like != nullptr && op.kind != OpKind::kAttention) {
      own.work.push_back(like->work[i]);
      continue;
    }
    const auto task =
        static_cast<size_t>(layout->grouper->task_of(instance.first_op + static_cast<int32_t>(i)));
    const auto work = estimate(op, layout->grouper->tasks()[task], is_head, rows);
    if (!work) {
      return make_error(ErrorCode::kUnsupported, "{} cannot have {}",
                        cost.devices()[static_cast<size_t>(op.device)].name, to_string(op.kind));
    }
    Needed one;
    one.add(*work, facts[static_cast<size_t>(op.device)]);
    own.work.emplace_back(one, work->path);
  }
  own.known = true;
  return &own;
}

Status PassScheduler::State::add_work(int64_t rows) {
  needed.assign(layout->grouper->tasks().size(), {});
  switches_us.assign(layout->grouper->tasks().size(), 0);
  last_product.assign(infos.size(), {});
  for (StageCost& one : stage_costs) {
    one.known = false;
    one.work.clear();
  }
  stage_costs.resize((stages.size() + 1) * blocks.size());
  for (const CutInstance& instance : instances) {
    // A copy only matters to what is switched after it.
    if (instance.copied && !switches) continue;
    ASSIGN_OR_RETURN(const StageCost* const costs, cost_of(instance, rows));
    for (size_t i = 0; i < costs->work.size(); ++i) {
      const auto& [work, path] = costs->work[i];
      const double us = path < 0 ? 0 : switch_to(instance, instance.stage->ops[i], path);
      if (instance.copied) continue;
      const auto task = static_cast<size_t>(
          layout->grouper->task_of(instance.first_op + static_cast<int32_t>(i)));
      needed[task].add(work);
      switches_us[task] += us;
    }
  }
  return {};
}

TaskPlace PassScheduler::State::place_of(const TaskGroup& task) const {
  TaskPlace place =
      layout->place_at[static_cast<size_t>(instances[static_cast<size_t>(task.instance)].position)];
  if (task.block >= 0) place.chunk = blocks[static_cast<size_t>(task.block)].chunk;
  return place;
}

Status PassScheduler::State::fill(int64_t rows, PassSchedule& out) {
  RETURN_IF_ERROR(add_work(rows));
  // What is the chip's; of the tasks only those that are no copies are looked at, and what they
  // wait for is earlier by construction.
  RETURN_IF_ERROR(check(chip));
  const auto& tasks = layout->grouper->tasks();
  Schedule& schedule = out.schedule;
  schedule.n_devices = chip.n_devices;
  schedule.shared_gbps = chip.shared_gbps;
  schedule.runs = chip.runs;
  schedule.idle_w = chip.idle_w;
  schedule.turbo_mj = chip.turbo_mj;
  schedule.waits = layout->grouper->waits();
  schedule.tasks.resize(tasks.size());
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskGroup& from = tasks[t];
    Task& task = schedule.tasks[t];
    const auto original = static_cast<size_t>(from.original);
    if (original != t) {
      task = schedule.tasks[original];
      task.first_wait = from.first_wait;
      continue;
    }
    task = {};
    task.device = from.device;
    task.first_wait = from.first_wait;
    task.n_waits = from.n_waits;
    const auto delay = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(from.delay_us));
    task.delay_us = static_cast<float>(to_us(delay));
    const auto device = static_cast<size_t>(from.device);
    set_work(cost, device, options.sync, needed[t], switches_us[t], !schedule.waits.empty(), task);
    if (!has_sound_numbers(task)) {
      return make_error(ErrorCode::kInvalidData,
                        "{}: a time, a demand or a power of a task is negative or not finite",
                        cost.devices()[device].name);
    }
  }
  return {};
}

Status PassScheduler::State::by_lowering(const plan::RowsBucket& bucket, int64_t rows,
                                         PassSchedule& out) const {
  ASSIGN_OR_RETURN(const plan::TaskList list,
                   plan::lower(plan, bucket, graph, rows, options.logit_rows, infos));
  ASSIGN_OR_RETURN(out.schedule, schedule_from(list, cost, options));
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
  state_->lowered = true;
  out.places.clear();
  // Values of joined chunks go from one partition of the rows to another.
  const bool joins = std::any_of(bucket.placements.begin(), bucket.placements.end(),
                                 [](const plan::Placement& one) { return one.join_chunks > 1; });
  if (joins) return state_->by_lowering(bucket, rows, out);
  RETURN_IF_ERROR(state_->cut_pass(bucket, rows));
  if (state_->layout == nullptr || !state_->layout->cutter->sound()) {
    return state_->by_lowering(bucket, rows, out);
  }
  RETURN_IF_ERROR(state_->layout->grouper->run(state_->instances, state_->blocks,
                                               std::min(state_->options.logit_rows, rows)));
  state_->lowered = false;
  return state_->fill(rows, out);
}

void PassScheduler::add_places(PassSchedule& out) const {
  if (state_->lowered || !out.places.empty()) return;
  for (const TaskGroup& task : state_->layout->grouper->tasks()) {
    out.places.push_back(state_->place_of(task));
  }
}

std::vector<double> PassScheduler::weight_bytes() const {
  const State& state = *state_;
  if (state.lowered) return {};
  struct Slice {
    int32_t device = 0;
    int64_t number = 0;  // of the product in its stage
    int64_t n_begin = 0;
    int64_t n = 0;
    int64_t k_begin = 0;
    int64_t k = 0;
    auto operator<=>(const Slice&) const = default;
  };
  std::vector<double> bytes(state.infos.size(), 0);
  std::vector<std::vector<const CutStage*>> stages(static_cast<size_t>(state.layout->positions));
  std::vector<std::vector<Slice>> seen(stages.size());
  for (const CutInstance& instance : state.instances) {
    const auto position = static_cast<size_t>(instance.position);
    auto& known = stages[position];
    if (std::find(known.begin(), known.end(), instance.stage) != known.end()) continue;
    known.push_back(instance.stage);
    const OpId first = state.layout->ops[position - static_cast<size_t>(instance.shift)].front();
    for (const CutOp& op : instance.stage->ops) {
      if (op.kind != OpKind::kMatMul) continue;
      const Slice slice{op.device, op.product - first, op.n_begin, op.n, op.k_begin, op.k};
      auto& slices = seen[position];
      if (std::find(slices.begin(), slices.end(), slice) != slices.end()) continue;
      slices.push_back(slice);
      bytes[static_cast<size_t>(op.device)] +=
          op.weight_bits / 8 * static_cast<double>(op.n) * static_cast<double>(op.k);
    }
  }
  return bytes;
}

std::vector<TaskFacts> PassScheduler::task_facts(int64_t rows) const {
  const State& state = *state_;
  if (state.lowered) return {};
  const auto& tasks = state.layout->grouper->tasks();
  std::vector<TaskFacts> facts(tasks.size());
  for (size_t t = 0; t < tasks.size(); ++t) {
    const bool whole = tasks[t].block < 0;
    const plan::Block* const block =
        whole ? nullptr : &state.blocks[static_cast<size_t>(tasks[t].block)];
    facts[t].row_begin = whole ? 0 : block->begin;
    facts[t].rows = whole ? rows : block->rows;
  }
  for (const CutInstance& instance : state.instances) {
    for (size_t i = 0; i < instance.stage->ops.size(); ++i) {
      const CutOp& op = instance.stage->ops[i];
      const int32_t number = instance.first_op + static_cast<int32_t>(i);
      TaskFacts& task = facts[static_cast<size_t>(state.layout->grouper->task_of(number))];
      if (instance.block == kHeadBlock) task.rows = std::min(state.options.logit_rows, rows);
      const auto count = static_cast<double>(task.rows);
      task.bytes += op.width_bytes * count;
      if (op.kind == OpKind::kConcat) task.copy_bytes += op.width_bytes * count;
      if (op.kind == OpKind::kMatMul) {
        const double weights = static_cast<double>(op.n) * static_cast<double>(op.k);
        task.bytes += op.weight_bits / 8 * weights;
        task.macs += weights * count;
      } else if (op.kind == OpKind::kAttention) {
        const double keys =
            static_cast<double>(state.options.depth + task.row_begin) + (count + 1) / 2;
        task.macs += 2 * static_cast<double>(op.head_width) * keys * count;
      }
    }
  }
  return facts;
}

}  // namespace troika::sim
