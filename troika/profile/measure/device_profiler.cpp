#include "troika/profile/measure/device_profiler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace troika::profile {
namespace {

using graph::OpKind;

// Weights of other layers follow each other in a task until it reads this much, so that they come
// from where a pass finds them and a task is long enough to be timed.
constexpr double kBytesOfCopies = 4e6;
constexpr int64_t kMostCopies = 8;
// More than a processor keeps in its caches.
constexpr double kBytesOfCaches = 64e6;
// With more rows arithmetic hides where weights come from.
constexpr int64_t kColdRows = 128;
constexpr int64_t kOpsOfLaunch = 4;
// A tile's first element costs most of what the whole tile does, and that is more than noise.
constexpr double kFirstOfStep = 0.8;
constexpr double kLeastStep = 0.05;
// Outputs from which on arithmetic decides, even with much input to read.
constexpr int64_t kTileProbeOutputs = 256;
// An order of operands that is this much slower is worth a table of its own.
constexpr double kOrderMatters = 1.1;
constexpr int kOrderTries = 3;

WorkloadRows rows_for(int64_t rows, int64_t max_rows, int64_t depth = 0) {
  return {rows, depth, max_rows};
}

}  // namespace

DeviceProfiler::DeviceProfiler(const graph::Graph& graph, const ModelWork& work,
                               device::Device& device, const ProfilerOptions& options,
                               const Clock& clock, DeviceProfile& profile,
                               std::function<void(double)> step)
    : graph_(graph),
      work_(work),
      device_(device),
      options_(options),
      profile_(profile),
      step_(std::move(step)),
      stopwatch_(device, clock, options.repeats, options.cancelled) {}

Status DeviceProfiler::run() {
  const size_t shapes = work_.products.size();
  begin_part(0.1, 2 + 2 * shapes + 15);
  RETURN_IF_ERROR(launches());
  RETURN_IF_ERROR(order());
  RETURN_IF_ERROR(tiles());
  const size_t orders = profile_.chooses_order ? 2 : 1;
  const size_t lengths = first_rows().size();
  const size_t some = some_rows().size();
  // Machines have slow seconds, and what is measured in them is all too slow: layers, which say how
  // long everything takes together, are measured at both ends, and the faster time counts.
  if (options_.layers && profile_.layers.empty()) {
    begin_part(0.15, lengths * 4);
    RETURN_IF_ERROR(prepare_layers());
    if (profile_.products.empty()) RETURN_IF_ERROR(time_layers());
  }
  begin_part(0.4, orders * shapes * lengths);
  RETURN_IF_ERROR(products());
  begin_part(0.65, orders * shapes * some * 6);
  RETURN_IF_ERROR(slices());
  begin_part(0.75, shapes * 8);
  RETURN_IF_ERROR(hold_out());
  RETURN_IF_ERROR(bandwidth());
  if (options_.layers) {
    begin_part(0.85, some * options_.depths.size());
    RETURN_IF_ERROR(attention());
    begin_part(0.9, some * 4);
    RETURN_IF_ERROR(elementwise());
    begin_part(1, lengths * 4);
    RETURN_IF_ERROR(layers());
  }
  begin_part(1, 1);
  step();
  return {};
}

void DeviceProfiler::begin_part(double until, size_t steps) {
  done_part_ = until_;
  until_ = until;
  step_part_ = (until - done_part_) / static_cast<double>(std::max<size_t>(steps, 1));
}

void DeviceProfiler::step() {
  done_part_ = std::min(done_part_ + step_part_, until_);
  step_(done_part_);
}

int64_t DeviceProfiler::compiled_rows(int64_t rows) const {
  const auto& standard = device_.info().standard_rows;
  if (standard.empty()) return rows;
  const auto at = std::lower_bound(standard.begin(), standard.end(), rows);
  return at == standard.end() ? 0 : *at;
}

bool DeviceProfiler::can_have(int64_t rows) const {
  return rows >= 1 && rows <= options_.max_rows && compiled_rows(rows) > 0;
}

bool DeviceProfiler::too_large(int64_t rows, int64_t n, int64_t k) const {
  return rows > 1 && static_cast<double>(compiled_rows(rows)) * static_cast<double>(n) *
                             static_cast<double>(k) >
                         options_.most_macs;
}

int64_t DeviceProfiler::n_cut(int64_t n) const {
  const int64_t tile = std::max(profile_.n_cut, profile_.n_tile);
  return std::max<int64_t>(1, n / tile) * tile;
}

int64_t DeviceProfiler::k_cut(int64_t k, model::TensorType type) const {
  const int64_t block = model::traits(type).block_weights;
  const int64_t tile = std::lcm(block, std::max(profile_.k_cut, profile_.k_tile));
  return std::max<int64_t>(1, k / tile) * tile;
}

std::vector<int64_t> DeviceProfiler::first_rows() const {
  std::vector<int64_t> rows;
  for (const int64_t length : profile_.standard_rows) {
    if (can_have(length)) rows.push_back(length);
  }
  if (!rows.empty()) return rows;
  if (profile_.row_tile > 1) rows.push_back(1);
  for (int64_t r = profile_.row_tile; r < options_.max_rows; r *= 2) rows.push_back(r);
  rows.push_back((options_.max_rows + profile_.row_tile - 1) / profile_.row_tile *
                 profile_.row_tile);
  std::erase_if(rows, [this](int64_t r) { return !can_have(r); });
  return rows;
}

std::vector<int64_t> DeviceProfiler::some_rows() const {
  std::set<int64_t> rows;
  const std::vector<int64_t> all = first_rows();
  for (const int64_t wanted : {int64_t{1}, int64_t{32}, int64_t{256}}) {
    const auto at = std::lower_bound(all.begin(), all.end(), wanted);
    rows.insert(at == all.end() ? all.back() : *at);
  }
  return {rows.begin(), rows.end()};
}

int64_t DeviceProfiler::many_rows() const {
  for (int64_t rows = 256; rows > 1; rows /= 2) {
    if (can_have(rows)) return compiled_rows(rows);
  }
  return 1;
}

Result<Sample> DeviceProfiler::probe(const Shape& shape, int64_t rows, int64_t n, int64_t k,
                                     Order in_place, int64_t copies) {
  std::vector<graph::WeightSlice> slices;
  for (int64_t i = 0; i < copies; ++i) {
    // The last ones are the least likely to be among those of before().
    const size_t back = static_cast<size_t>(i) % shape.weights.size();
    slices.push_back({shape.weights[shape.weights.size() - 1 - back], 0, n, 0, k});
  }
  ASSIGN_OR_RETURN(auto workload,
                   Workload::products(slices, rows_for(rows, compiled_rows(rows)), in_place));
  const auto prepared = stopwatch_.prepare(std::move(workload));
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  const double bytes = static_cast<double>(n * k * copies) * shape.bits() / 8;
  ASSIGN_OR_RETURN(Sample time, stopwatch_.time({&*prepared, 1}, before(rows, bytes)));
  // Of what was built again after an interruption the first time stays.
  const bool built =
      std::any_of(profile_.builds.begin(), profile_.builds.end(),
                  [&](const BuildPoint& p) { return p.rows == rows && p.n == n && p.k == k; });
  if (copies == 1 && !built && (!profile_.standard_rows.empty() || profile_.row_tile > 1)) {
    profile_.builds.push_back(
        {rows, n, k, to_us((*prepared)->compile_time), (*prepared)->kept_bytes});
  }
  const double task = std::min(profile_.launch.task_us, 0.9 * time.median_us);
  time.median_us = (time.median_us - task) / static_cast<double>(copies);
  time.deviation_us /= static_cast<double>(copies);
  step();
  return time;
}

Result<double> DeviceProfiler::point(const Shape& shape, int64_t rows, int64_t n, int64_t k,
                                     Order in_place) {
  const std::string type(model::traits(shape.type).name);
  const auto same = [&](const ProductPoint& p) {
    return p.rows == rows && p.n == n && p.k == k && p.type == type && p.order == in_place;
  };
  const auto known = std::find_if(profile_.products.begin(), profile_.products.end(), same);
  if (known != profile_.products.end()) return known->time.median_us;
  int64_t copies = 1;
  const double bytes = static_cast<double>(n) * static_cast<double>(k) * shape.bits() / 8;
  if (rows <= kFewRows) {
    copies = std::clamp(static_cast<int64_t>(kBytesOfCopies / bytes), int64_t{1},
                        std::min<int64_t>(kMostCopies, std::ssize(shape.weights)));
  }
  ASSIGN_OR_RETURN(const Sample time, probe(shape, rows, n, k, in_place, copies));
  profile_.products.push_back({rows, n, k, type, shape.bits(), in_place, time});
  return time.median_us;
}

Status DeviceProfiler::both_orders(const Shape& shape, int64_t rows, int64_t n, int64_t k) {
  if (too_large(rows, n, k)) return {};
  RETURN_IF_ERROR(point(shape, rows, n, k, Order::kWeightInPlace));
  if (profile_.chooses_order) RETURN_IF_ERROR(point(shape, rows, n, k, Order::kInputInPlace));
  return {};
}

// Several products in a task against one tell what the task costs by itself.
Status DeviceProfiler::launches() {
  LaunchCosts& costs = profile_.launch;
  if (!profile_.products.empty()) return {};  // of an interrupted run, which knew
  const Shape& small =
      *std::min_element(work_.products.begin(), work_.products.end(),
                        [](const auto& a, const auto& b) { return a.n * a.k < b.n * b.k; });
  costs = {};
  ASSIGN_OR_RETURN(const Sample one, probe(small, 1, small.n, small.k, Order::kWeightInPlace, 1));
  ASSIGN_OR_RETURN(const Sample several,
                   probe(small, 1, small.n, small.k, Order::kWeightInPlace, kOpsOfLaunch));
  constexpr auto kCount = static_cast<double>(kOpsOfLaunch);
  const std::vector<graph::WeightSlice> slice = {{small.weights[0], 0, small.n, 0, small.k}};
  ASSIGN_OR_RETURN(auto workload,
                   Workload::products(slice, rows_for(1, compiled_rows(1)), Order::kWeightInPlace));
  ASSIGN_OR_RETURN(const auto prepared, stopwatch_.prepare(std::move(workload)));
  std::vector<double> submit, drained, queued, notice;
  for (int i = 0; i < 30; ++i) {
    const TimePoint begin = stopwatch_.host().now();
    ASSIGN_OR_RETURN(const device::Fence first,
                     device_.submit(*prepared->kernel, prepared->workload->bindings(), {}));
    const TimePoint submitted = stopwatch_.host().now();
    ASSIGN_OR_RETURN(const device::Fence second,
                     device_.submit(*prepared->kernel, prepared->workload->bindings(), {}));
    RETURN_IF_ERROR(stopwatch_.wait(second, prepared));
    const TimePoint noticed = stopwatch_.host().now();
    const device::TaskTimes a = device_.times(first);
    const device::TaskTimes b = device_.times(second);
    submit.push_back(to_us(submitted - begin));
    drained.push_back(to_us(a.start - a.queued));
    queued.push_back(to_us(b.start - std::max(a.end, b.queued)));
    notice.push_back(to_us(noticed - begin) - to_us(b.end - a.queued));
  }
  const auto positive = [](std::vector<double> values) {
    return std::max(0.0, summarize(std::move(values)).median_us);
  };
  costs.submit_us = positive(std::move(submit));
  costs.drained_us = positive(std::move(drained));
  costs.queued_us = positive(std::move(queued));
  costs.notice_us = positive(std::move(notice));
  // Both without a task's cost taken off; `several` is per product.
  costs.task_us = std::max(0.0, kCount / (kCount - 1) * (one.median_us - several.median_us));
  return {};
}

Status DeviceProfiler::order() {
  if (!profile_.products.empty()) return {};  // of an interrupted run, which knew
  for (const Shape& shape : work_.products) {
    const int64_t rows = many_rows();
    if (!shape.in_layers || shape.n == shape.k || too_large(rows, shape.n, shape.k)) continue;
    bool differ = true;
    // A single disturbed time must not double all that is to be measured.
    for (int i = 0; i < kOrderTries && differ; ++i) {
      ASSIGN_OR_RETURN(const Sample weight,
                       probe(shape, rows, shape.n, shape.k, Order::kWeightInPlace, 1));
      ASSIGN_OR_RETURN(const Sample input,
                       probe(shape, rows, shape.n, shape.k, Order::kInputInPlace, 1));
      differ = std::max(weight.median_us, input.median_us) >
               kOrderMatters * std::min(weight.median_us, input.median_us);
    }
    profile_.chooses_order = profile_.chooses_order || differ;
  }
  return {};
}

// The least extent after which the next element costs a step, and the rest of that step nothing.
Result<int64_t> DeviceProfiler::tile_of(int64_t base,
                                        const std::function<Result<double>(int64_t)>& us) {
  for (const int64_t extent : {8, 16, 32, 64, 128}) {
    ASSIGN_OR_RETURN(const double full, us(base + extent));
    ASSIGN_OR_RETURN(const double next, us(base + extent + 1));
    ASSIGN_OR_RETURN(const double twice, us(base + 2 * extent));
    if (twice - full > kLeastStep * full && next - full > kFirstOfStep * (twice - full)) {
      return extent;
    }
  }
  return 1;
}

Status DeviceProfiler::tiles() {
  if (profile_.row_tile * profile_.n_tile * profile_.k_tile > 1) return {};
  const Shape& main = work_.main();
  const Order best = profile_.chooses_order ? Order::kInputInPlace : Order::kWeightInPlace;
  const auto probed = [&](int64_t rows, int64_t n, int64_t k) -> Result<double> {
    ASSIGN_OR_RETURN(const Sample time, probe(main, rows, n, k, best, 1));
    return time.median_us;
  };
  // All of them are known, or none: an interrupted run finds them again.
  int64_t row_tile = 1;
  if (device_.info().standard_rows.empty() && options_.max_rows >= 256) {
    ASSIGN_OR_RETURN(row_tile, tile_of(0, [&](int64_t rows) {
                       return probed(rows, std::min<int64_t>(main.n, 1024), main.k);
                     }));
  }
  // What pads rows may pad the rest; what does not pad them does not.
  if (row_tile == 1 && device_.info().standard_rows.empty()) return {};
  const int64_t rows = many_rows();
  int64_t n_tile = 1;
  if (main.n >= kTileProbeOutputs + 256) {
    ASSIGN_OR_RETURN(
        n_tile, tile_of(kTileProbeOutputs, [&](int64_t n) { return probed(rows, n, main.k); }));
    // Inputs are cut at blocks of the stored weights, so that only their multiples can be seen.
    profile_.k_tile = std::max<int64_t>(profile_.k_cut, 1);
  }
  profile_.row_tile = row_tile;
  profile_.n_tile = n_tile;
  return {};
}

bool DeviceProfiler::knows(const Shape& shape, int64_t rows) const {
  return std::any_of(profile_.products.begin(), profile_.products.end(), [&](const auto& p) {
    return p.rows == rows && p.n == shape.n && p.k == shape.k;
  });
}

// Between rows of which something is known the law must be near enough.
Status DeviceProfiler::refine(std::vector<int64_t>& rows) {
  const Shape& main = work_.main();
  const int64_t tile = profile_.row_tile;
  // Other shapes come after it: an interrupted run has chosen the lengths already.
  const bool chosen =
      std::any_of(profile_.products.begin(), profile_.products.end(),
                  [&](const ProductPoint& p) { return p.n != main.n || p.k != main.k; });
  if (chosen) {
    std::set<int64_t> known(rows.begin(), rows.end());
    for (const ProductPoint& p : profile_.products) {
      if (p.n == main.n && p.k == main.k) known.insert(p.rows);
    }
    rows.assign(known.begin(), known.end());
    return {};
  }
  // True if the law was off there, and learned from it.
  const auto learns = [&](int64_t at) -> Result<bool> {
    // Measured before an interruption: it was needed.
    if (!knows(main, at)) {
      const auto expected = law().us(main.bits(), at, main.n, main.k);
      ASSIGN_OR_RETURN(const Sample time,
                       probe(main, at, main.n, main.k, Order::kWeightInPlace, 1));
      const CheckPoint check{
          at, main.n, main.k, Order::kWeightInPlace, time.median_us, expected.value_or(0)};
      if (check.error() <= options_.row_error) return false;
    }
    rows.push_back(at);
    RETURN_IF_ERROR(both_orders(main, at, main.n, main.k));
    return true;
  };
  std::vector<std::pair<int64_t, int64_t>> gaps;
  for (size_t i = 1; i < rows.size(); ++i) gaps.emplace_back(rows[i - 1], rows[i]);
  for (size_t next = 0; next < gaps.size() && rows.size() < options_.most_rows_points; ++next) {
    auto [low, high] = gaps[next];
    // Kernels that take rows by the block have a step where a full one ends.
    const int64_t above = low + tile;
    if (above < high && !too_large(above, main.n, main.k)) {
      ASSIGN_OR_RETURN(const bool is_step, learns(above));
      if (is_step) low = above;
    }
    const auto root = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
    const int64_t middle = (static_cast<int64_t>(root) + tile - 1) / tile * tile;
    if (middle <= low || middle >= high || too_large(middle, main.n, main.k)) continue;
    ASSIGN_OR_RETURN(const bool is_off, learns(middle));
    if (!is_off) continue;
    gaps.emplace_back(low, middle);
    gaps.emplace_back(middle, high);
  }
  std::sort(rows.begin(), rows.end());
  return {};
}

Status DeviceProfiler::products() {
  std::vector<int64_t> rows = first_rows();
  const Shape& main = work_.main();
  for (const int64_t r : rows) RETURN_IF_ERROR(both_orders(main, r, main.n, main.k));
  if (profile_.standard_rows.empty()) RETURN_IF_ERROR(refine(rows));
  const std::vector<int64_t> some = some_rows();
  for (const Shape& shape : work_.products) {
    // Few rows ask for logits.
    for (const int64_t r : shape.in_layers ? rows : some) {
      if (!shape.in_layers && r > 32) continue;
      RETURN_IF_ERROR(both_orders(shape, r, shape.n, shape.k));
    }
  }
  return {};
}

Status DeviceProfiler::slices() {
  for (const Shape& shape : work_.products) {
    for (const int64_t quarters : {1, 2, 3}) {
      for (const int64_t rows : some_rows()) {
        if (!shape.in_layers && rows > 1) continue;
        RETURN_IF_ERROR(both_orders(shape, rows, n_cut(shape.n * quarters / 4), shape.k));
        if (!shape.in_layers) continue;
        RETURN_IF_ERROR(
            both_orders(shape, rows, shape.n, k_cut(shape.k * quarters / 4, shape.type)));
      }
    }
  }
  return {};
}

Status DeviceProfiler::hold_out() {
  const ProductLaw made = law();
  const auto check = [&](const Shape& shape, int64_t rows, int64_t n, int64_t k) -> Status {
    const bool known =
        std::any_of(profile_.checks.begin(), profile_.checks.end(),
                    [&](const auto& p) { return p.rows == rows && p.n == n && p.k == k; });
    if (known || !can_have(rows) || too_large(rows, n, k)) return {};
    int64_t copies = 1;
    if (rows <= kFewRows) copies = std::min<int64_t>(kMostCopies, std::ssize(shape.weights));
    ASSIGN_OR_RETURN(const Sample time, probe(shape, rows, n, k, Order::kWeightInPlace, copies));
    const auto expected = made.us(shape.bits(), rows, n, k);
    profile_.checks.push_back(
        {rows, n, k, Order::kWeightInPlace, time.median_us, expected.value_or(0)});
    return {};
  };
  for (const Shape& shape : work_.products) {
    if (!shape.in_layers) continue;
    const int64_t n = n_cut(shape.n * 3 / 5);
    const int64_t k = k_cut(shape.k * 2 / 5, shape.type);
    for (const int64_t rows : {1, 17, 100, 300}) {
      RETURN_IF_ERROR(check(shape, rows, shape.n, shape.k));
    }
    RETURN_IF_ERROR(check(shape, 1, n, shape.k));
    RETURN_IF_ERROR(check(shape, many_rows(), n, shape.k));
    RETURN_IF_ERROR(check(shape, many_rows(), shape.n, k));
    RETURN_IF_ERROR(check(shape, many_rows(), n, k));
  }
  return {};
}

Status DeviceProfiler::bandwidth() {
  for (const ProductPoint& point : profile_.products) {
    if (point.rows != 1 || point.time.median_us <= 0) continue;
    const double bytes =
        static_cast<double>(point.n) * static_cast<double>(point.k) * point.weight_bits / 8;
    profile_.read_gbps = std::max(profile_.read_gbps, bytes / point.time.median_us * 1e-3);
  }
  return {};
}

Status DeviceProfiler::attention() {
  if (work_.heads.n_heads == 0 || !profile_.attention.empty()) return {};
  std::vector<AttentionPoint> points;
  for (const int64_t rows : some_rows()) {
    for (const int64_t depth : options_.depths) {
      AttentionPoint point;
      point.rows = rows;
      point.depth = depth;
      point.n_heads = work_.heads.n_heads;
      point.n_kv_heads = work_.heads.n_heads / work_.heads.group;
      point.head_dim = work_.heads.head_dim;
      point.kv_type = device::to_string(options_.kv_type);
      points.push_back(std::move(point));
    }
  }
  std::vector<AttentionPoint> measured;
  for (AttentionPoint& point : points) {
    const int64_t copies = point.rows <= kFewRows ? kMostCopies : 1;
    ASSIGN_OR_RETURN(
        auto workload,
        Workload::attention(point, copies,
                            rows_for(point.rows, compiled_rows(point.rows), point.depth)));
    if (!workload->fits(device_)) return {};
    ASSIGN_OR_RETURN(const auto prepared, stopwatch_.prepare(std::move(workload)));
    ASSIGN_OR_RETURN(point.time, stopwatch_.time({&prepared, 1}, before(point.rows, 0)));
    const double task = std::min(profile_.launch.task_us, 0.9 * point.time.median_us);
    point.time.median_us = (point.time.median_us - task) / static_cast<double>(copies);
    point.time.deviation_us /= static_cast<double>(copies);
    measured.push_back(std::move(point));
    step();
  }
  profile_.attention = std::move(measured);
  return {};
}

Status DeviceProfiler::elementwise() {
  if (!profile_.elementwise.empty()) return {};
  std::vector<ElementwisePoint> measured;
  for (const OpKind kind : {OpKind::kRmsNorm, OpKind::kAdd, OpKind::kSiluMul, OpKind::kConcat}) {
    const int64_t width = kind == OpKind::kSiluMul ? work_.ffn : work_.hidden;
    for (const int64_t rows : some_rows()) {
      if (width == 0) continue;
      ASSIGN_OR_RETURN(auto workload,
                       Workload::elementwise(kind, width, rows_for(rows, compiled_rows(rows))));
      if (!workload->fits(device_)) continue;
      ElementwisePoint point;
      point.op = graph::to_string(kind);
      point.rows = rows;
      point.width = width;
      point.bytes = workload->activation_bytes();
      ASSIGN_OR_RETURN(const auto prepared, stopwatch_.prepare(std::move(workload)));
      ASSIGN_OR_RETURN(point.time, stopwatch_.time({&prepared, 1}));
      point.time.median_us -= std::min(profile_.launch.task_us, 0.9 * point.time.median_us);
      if (kind == OpKind::kConcat && point.time.median_us > 0) {
        profile_.copy_gbps =
            std::max(profile_.copy_gbps, point.bytes / point.time.median_us * 1e-3);
      }
      measured.push_back(std::move(point));
      step();
    }
  }
  profile_.elementwise = std::move(measured);
  return {};
}

Status DeviceProfiler::layers() {
  if (!profile_.layers.empty()) return {};
  RETURN_IF_ERROR(time_layers());
  for (LayerRuns& runs : layers_) profile_.layers.push_back(runs.point);
  layers_.clear();
  return {};
}

// So many that one is not kept in a cache until it comes again.
int64_t DeviceProfiler::layers_beyond_caches() const {
  double bytes = 0;
  for (const Shape& shape : work_.products) {
    if (!shape.in_layers) continue;
    bytes += shape.weight_bytes() * static_cast<double>(shape.weights.size());
  }
  const auto layers = static_cast<double>(std::max<int64_t>(1, graph_.n_layers));
  return static_cast<int64_t>(std::clamp(std::ceil(kBytesOfCaches * layers / std::max(bytes, 1.0)),
                                         2.0, std::max(2.0, layers)));
}

// None, if the device cannot have all of a layer.
Status DeviceProfiler::prepare_layers() {
  std::vector<LayerRuns> all;
  for (const int64_t rows : first_rows()) {
    const int64_t count =
        std::min<int64_t>(graph_.n_layers, rows <= kColdRows ? layers_beyond_caches() : 2);
    LayerRuns& runs = all.emplace_back();
    runs.point.rows = rows;
    for (int32_t layer = 0; layer < count; ++layer) {
      ASSIGN_OR_RETURN(auto workload, Workload::layer(graph_, layer, options_.kv_type,
                                                      rows_for(rows, compiled_rows(rows))));
      if (!workload->fits(device_)) return {};
      ASSIGN_OR_RETURN(auto prepared, stopwatch_.prepare(std::move(workload)));
      runs.prepared.push_back(std::move(prepared));
      step();
    }
    if (runs.prepared.empty()) return {};
  }
  layers_ = std::move(all);
  return {};
}

std::span<const std::shared_ptr<Prepared>> DeviceProfiler::before(int64_t rows,
                                                                  double bytes) const {
  if (layers_.empty() || rows > kColdRows || bytes >= kBytesOfCaches) return {};
  return layers_.front().prepared;
}

Status DeviceProfiler::time_layers() {
  for (LayerRuns& runs : layers_) {
    ASSIGN_OR_RETURN(const Sample sample, stopwatch_.time(runs.prepared));
    Sample& best = runs.point.time;
    if (best.repeats == 0 || sample.median_us < best.median_us) best = sample;
  }
  return {};
}

}  // namespace troika::profile
