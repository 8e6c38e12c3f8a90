#include "troika/cost/describe_profile.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "troika/cost/profiled_cost.h"
#include "troika/soc/validate.h"

namespace troika::cost {
namespace {

using profile::DeviceProfile;
using soc::Figure;
using soc::FigureKind;

// As descriptions may hold.
constexpr double kLeastRate = 1e-6;  // TFLOPS
constexpr double kLeastGbps = 0.001;

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
    soc.sync.fast = measured(cost_.join_us(), "a join in the queue");
    soc.sync.blocking = measured(cost_.blocking_join_us(), "a join by a caller that blocks");
    soc.idle_power = {0, FigureKind::kFitted, "not measured: a profile holds no idle power"};
    RETURN_IF_ERROR(soc::validate(soc));
    return soc;
  }

 private:
  Figure measured(double value, const std::string& what) const {
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

  static double most_tflops(const DeviceProfile& device) {
    double most = kLeastRate;
    for (const profile::ProductPoint& p : device.products) {
      const double operations =
          2.0 * static_cast<double>(p.rows) * static_cast<double>(p.n) * static_cast<double>(p.k);
      if (p.time.median_us > 0) most = std::max(most, operations / p.time.median_us * 1e-6);
    }
    return most;
  }

  static double attention_tflops(const DeviceProfile& device) {
    double most = 0;
    for (const profile::AttentionPoint& p : device.attention) {
      if (p.time.median_us > 0) most = std::max(most, 2 * p.macs() / p.time.median_us * 1e-6);
    }
    return most;
  }

  static std::vector<std::string> types_of(const DeviceProfile& device) {
    return device.int8_inputs ? std::vector<std::string>{"w4a8", "w8a8"}
                              : std::vector<std::string>{"w4a16", "w8a16", "w16a16"};
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
        measured(std::max(facts.bandwidth_gbps, kLeastGbps), "stored weights, one row");
    soc::Path path;
    path.types = types_of(device);
    path.integer = device.int8_inputs;
    path.rate = measured(most_tflops(device), "the fastest product");
    path.alone =
        measured(device.launch.task_us + device.launch.drained_us + device.launch.notice_us,
                 "a task's own cost, start and notice");
    unit.paths = {std::move(path)};
    if (facts.static_graphs) static_graphs(index, unit);
    if (const double rate = attention_tflops(device); rate > 0) {
      unit.attention_rate = measured(std::max(rate, kLeastRate), "the fastest attention");
    }
    unit.launch_queued = measured(device.launch.queued_us, "next task in the queue");
    unit.launch_drained = measured(device.launch.drained_us, "start of an idle device");
    return unit;
  }

  void static_graphs(size_t index, soc::Unit& unit) const {
    unit.law = soc::Law::kStatic;
    soc::StaticGraphs graphs;
    graphs.tile = measured(static_cast<double>(profile_.devices[index].row_tile), "steps of rows");
    for (const int64_t rows : cost_.devices()[index].standard_lengths) {
      graphs.standard_lengths.values.push_back(static_cast<double>(rows));
    }
    graphs.standard_lengths.kind = FigureKind::kMeasured;
    graphs.standard_lengths.source = "lengths of the device: " + source_;
    constexpr int64_t kMany = 1024;
    const double one = cost_.build_us(index, 1) * 1e-3;
    const double many = cost_.build_us(index, kMany) * 1e-3;
    const double per_token = std::max(0.0, (many - one) / (kMany - 1));
    graphs.build_base = measured(std::max(0.0, one - per_token), "graphs that were built");
    graphs.build_per_token = measured(per_token, "graphs that were built");
    unit.static_graphs = std::move(graphs);
  }

  void memory(soc::Soc& soc) const {
    double most = kLeastGbps;
    for (const soc::Unit& unit : soc.units) most = std::max(most, unit.bandwidth.value);
    for (const profile::PairProfile& pair : profile_.pairs)
      most = std::max(most, pair.together_gbps);
    soc.memory.peak = measured(most, "the most that was reached");
    soc.memory.reachable = measured(most, "the most that was reached");
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
          measured(std::clamp(pair.together_gbps, alone, most), "both read stored weights");
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
