#include "troika/cost/describe_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "troika/base/median.h"
#include "troika/cost/profiled_cost.h"
#include "troika/soc/unit_fields.h"
#include "troika/soc/validate.h"

namespace troika::cost {
namespace {

using profile::DeviceProfile;
using soc::Figure;
using soc::FigureKind;

constexpr double kManyBytes = 1e6;
// Of what products take: arithmetic's part is not less.
constexpr double kLeastLeft = 0.2;

class Describer {
 public:
  explicit Describer(const ProfiledCost& cost) : cost_(cost), profile_(cost.profile()) {
    source_ = fmt::format("troika profile of {} ({}), build {}", profile_.model.name,
                          profile_.model.type, profile_.build);
  }

  Result<soc::Soc> run(const std::string& name) {
    soc::Soc soc;
    soc.name = name;
    soc.description = profile_.machine.cpu.empty() ? "a machine" : profile_.machine.cpu;
    soc.stack = "Troika";
    for (size_t i = 0; i < profile_.devices.size(); ++i) {
      soc.units.push_back(unit(i));
      soc.stack += fmt::format("{}{} {}", i == 0 ? ": " : ", ", profile_.devices[i].name,
                               profile_.devices[i].version);
    }
    memory(soc);
    soc.sync.fast = figure(cost_.join_us(), "a join in the queue");
    soc.sync.blocking = figure(cost_.blocking_join_us(), "a join by a caller that blocks");
    soc.idle_power = {0, FigureKind::kFitted, "not measured: a profile holds no idle power"};
    RETURN_IF_ERROR(soc::validate(soc));
    return soc;
  }

 private:
  Figure figure(double value, const std::string& what) const {
    return {value, FigureKind::kMeasured, what + ": " + source_};
  }

  // Lower-case letters, digits and hyphens, each unit another.
  std::string unit_name(const std::string& device) {
    std::string name;
    for (const char c : device) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (plain) name += c;
      if (!plain && !name.empty() && name.back() != '-') name += '-';
    }
    while (!name.empty() && name.back() == '-') name.pop_back();
    if (name.empty() || !(name[0] >= 'a' && name[0] <= 'z')) name = "unit-" + name;
    while (!names_.insert(name).second) name += "x";
    return name;
  }

  // With many rows, where arithmetic counts. 0: none was measured.
  static double attention_tflops(const DeviceProfile& device) {
    std::vector<double> rates;
    for (const profile::AttentionPoint& p : device.attention) {
      if (p.time.median_us <= 0) continue;
      if (p.rows > profile::kFewRows) rates.push_back(2 * p.macs() / p.time.median_us * 1e-6);
    }
    return rates.empty() ? 0 : median(std::move(rates));
  }

  // With few rows, where keys and values have to be read. 0: none was measured.
  static double attention_gbps(const DeviceProfile& device) {
    std::vector<double> rates;
    for (const profile::AttentionPoint& p : device.attention) {
      if (p.time.median_us <= 0 || p.depth == 0) continue;
      if (p.rows <= profile::kFewRows) rates.push_back(p.bytes() / p.time.median_us * 1e-3);
    }
    return rates.empty() ? 0 : median(std::move(rates));
  }

  // What products of one type of weights were measured.
  struct Measured {
    std::vector<std::string> types;  // that they stand for
    double weight_bits = 0;
    std::set<int64_t> rows;
    size_t points = 0;
    bool in_layers = false;  // else: of the head
  };

  // A type for each kind of stored weights; what was not measured is as the nearest that was.
  static std::vector<Measured> measured_types(const DeviceProfile& device) {
    std::map<std::string_view, Measured> known;
    for (const profile::ProductPoint& p : device.products) {
      if (p.time.median_us <= 0) continue;
      Measured& one = known[soc::types_near(p.weight_bits).front()];
      one.weight_bits = p.weight_bits;
      one.rows.insert(p.rows);
      ++one.points;
    }
    const auto most = std::max_element(
        known.begin(), known.end(),
        [](const auto& a, const auto& b) { return a.second.points < b.second.points; });
    most->second.in_layers = true;
    for (const double bits : {4.0, 8.0, 16.0}) {
      for (const std::string_view type : soc::types_near(bits)) {
        const auto found = known.find(type);
        if (found == known.end()) continue;
        found->second.types.emplace_back(soc::types_near(bits).front());
        break;
      }
    }
    std::vector<Measured> list;
    for (auto& [type, one] : known) {
      for (std::string& name : one.types) {
        if (device.int8_inputs) name.replace(name.find("a16"), 3, "a8");
      }
      if (device.int8_inputs) std::erase(one.types, "w16a8");
      if (!one.types.empty()) list.push_back(std::move(one));
    }
    return list;
  }

  using Shapes = std::vector<std::pair<int64_t, int64_t>>;

  // Of all products of a layer, or of the head if it has other weights.
  Shapes shapes_of(size_t index, const Measured& measured) const {
    const profile::ProfiledModel& model = profile_.model;
    std::pair<int64_t, int64_t> largest{0, 0};
    for (const profile::ProductPoint& p : profile_.devices[index].products) {
      if (p.weight_bits != measured.weight_bits) continue;
      if (p.n * p.k > largest.first * largest.second) largest = {p.n, p.k};
    }
    const int64_t q = model.n_heads * model.head_dim;
    const int64_t kv = model.n_kv_heads * model.head_dim;
    const int64_t hidden = model.hidden;
    const bool known = q > 0 && kv > 0 && hidden > 0 && model.ffn > 0;
    if (!known || !measured.in_layers) return {largest};
    return {{q, hidden},         {kv, hidden},        {kv, hidden},       {hidden, q},
            {model.ffn, hidden}, {model.ffn, hidden}, {hidden, model.ffn}};
  }

  double product_us(size_t index, const Measured& measured, int64_t rows, int64_t n,
                    int64_t k) const {
    return cost_.product(index, {rows, n, k, "", measured.weight_bits, false})->compute_us;
  }

  // What products of one row take however small they are: least squares of relative errors over
  // the extents that were measured.
  double overhead_us(size_t index, const Measured& measured) const {
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
    for (const profile::ProductPoint& p : profile_.devices[index].products) {
      if (p.weight_bits != measured.weight_bits || p.rows != 1) continue;
      const double us = product_us(index, measured, 1, p.n, p.k);
      if (!(us > 0)) continue;
      const double fixed = 1 / us;
      const double extent = static_cast<double>(p.n) * static_cast<double>(p.k) / us;
      aa += fixed * fixed, ab += fixed * extent, bb += extent * extent, a += fixed, b += extent;
    }
    const double scale = aa * bb - ab * ab;
    if (!(scale > 1e-9 * aa * bb)) return 0;
    return std::clamp((a * bb - b * ab) / scale, soc::kMicroseconds.min, soc::kMicroseconds.max);
  }

  soc::Path path(size_t index, const Measured& measured) const {
    const DeviceProfile& device = profile_.devices[index];
    const Shapes shapes = shapes_of(index, measured);
    const double overhead = overhead_us(index, measured);
    soc::Path path;
    path.types = measured.types;
    path.integer = device.int8_inputs;
    soc::FigureCurve curve;
    // A description holds so many at most.
    const size_t step = (measured.rows.size() + soc::kMaxLengths - 1) / soc::kMaxLengths;
    size_t number = 0;
    for (const int64_t rows : measured.rows) {
      if (number++ % step != 0) continue;
      double operations = 0;
      double us = 0;
      for (const auto& [n, k] : shapes) {
        operations += Product{rows, n, k, "", measured.weight_bits, false}.operations();
        us += product_us(index, measured, rows, n, k);
      }
      const double left = us - overhead * static_cast<double>(shapes.size());
      curve.tokens.push_back(static_cast<double>(rows));
      curve.values.push_back(std::clamp(operations / std::max(left, kLeastLeft * us) * 1e-6,
                                        soc::kRate.min, soc::kRate.max));
    }
    curve.kind = FigureKind::kMeasured;
    curve.source = "products as in a layer: " + source_;
    path.rate =
        figure(*std::max_element(curve.values.begin(), curve.values.end()), "the fastest products");
    path.rate_by_tokens = std::move(curve);
    path.overhead = figure(overhead, "small products of one row");
    path.alone = figure(device.launch.task_us + device.launch.drained_us + device.launch.notice_us,
                        "a task's own cost, start and notice");
    return path;
  }

  soc::Unit unit(size_t index) {
    const DeviceProfile& device = profile_.devices[index];
    const DeviceFacts& facts = cost_.devices()[index];
    soc::Unit unit;
    unit.name = unit_name(device.name);
    unit.kind = device.kind == "gpu"   ? soc::UnitKind::kGpu
                : device.kind == "npu" ? soc::UnitKind::kNpu
                                       : soc::UnitKind::kCpu;
    unit.description = device.description;
    unit.device = device.name;
    unit.only_products = facts.only_products;
    unit.bandwidth =
        figure(std::max(facts.bandwidth_gbps, soc::kBandwidth.min), "stored weights, one row");
    for (const Measured& type : measured_types(device)) unit.paths.push_back(path(index, type));
    if (facts.static_graphs) static_graphs(index, unit);
    if (const double rate = attention_tflops(device); rate > 0) {
      unit.attention_rate =
          figure(std::clamp(rate, soc::kRate.min, soc::kRate.max), "attention of many rows");
    }
    if (const double gbps = attention_gbps(device); gbps > 0 && unit.attention_rate) {
      unit.attention_stream = figure(std::clamp(gbps, soc::kBandwidth.min, unit.bandwidth.value),
                                     "attention of few rows");
    }
    if (!device.elementwise.empty()) {
      const double us = cost_.elementwise(index, 2 * kManyBytes).work_us() -
                        cost_.elementwise(index, kManyBytes).work_us();
      unit.elementwise_traffic = figure(
          std::clamp(us * unit.bandwidth / kManyBytes * 1e3, soc::kTraffic.min, soc::kTraffic.max),
          "norms, sums and copies");
    }
    unit.launch_queued = figure(device.launch.queued_us, "next task in the queue");
    unit.launch_drained = figure(device.launch.drained_us, "start of an idle device");
    return unit;
  }

  void static_graphs(size_t index, soc::Unit& unit) const {
    unit.law = soc::Law::kStatic;
    soc::StaticGraphs graphs;
    graphs.tile = figure(static_cast<double>(profile_.devices[index].row_tile), "steps of rows");
    for (const int64_t rows : cost_.devices()[index].standard_lengths) {
      graphs.standard_lengths.values.push_back(static_cast<double>(rows));
    }
    graphs.standard_lengths.kind = FigureKind::kMeasured;
    graphs.standard_lengths.source = "lengths of the device: " + source_;
    constexpr int64_t kMany = 1024;
    const double one = cost_.build_us(index, 1) * 1e-3;
    const double many = cost_.build_us(index, kMany) * 1e-3;
    const double per_token = std::max(0.0, (many - one) / (kMany - 1));
    graphs.build_base = figure(std::max(0.0, one - per_token), "graphs that were built");
    graphs.build_per_token = figure(per_token, "graphs that were built");
    unit.static_graphs = std::move(graphs);
  }

  void memory(soc::Soc& soc) const {
    double most = soc::kBandwidth.min;
    for (const soc::Unit& unit : soc.units) most = std::max(most, unit.bandwidth.value);
    for (const profile::PairProfile& pair : profile_.pairs)
      most = std::max(most, pair.together_gbps);
    soc.memory.peak = figure(most, "the most that was reached");
    soc.memory.reachable = figure(most, "the most that was reached");
    for (const profile::PairProfile& pair : profile_.pairs) {
      soc::Together together;
      double alone = 0;
      for (size_t i = 0; i < profile_.devices.size(); ++i) {
        const std::string& name = profile_.devices[i].name;
        if (name != pair.first && name != pair.second) continue;
        together.units.push_back(soc.units[i].name);
        alone = std::max(alone, soc.units[i].bandwidth.value);
      }
      together.bandwidth =
          figure(std::clamp(pair.together_gbps, alone, most), "both read stored weights");
      soc.memory.together.push_back(std::move(together));
    }
  }

  const ProfiledCost& cost_;
  const profile::Profile& profile_;
  std::string source_;
  std::set<std::string> names_;
};

}  // namespace

Result<soc::Soc> describe_profile(const profile::Profile& profile, const std::string& name) {
  ASSIGN_OR_RETURN(const ProfiledCost cost, ProfiledCost::create(profile));
  return Describer(cost).run(name);
}

}  // namespace troika::cost
