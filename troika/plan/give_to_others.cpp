#include "troika/plan/give_to_others.h"

#include <algorithm>
#include <map>
#include <set>

namespace troika::plan {
namespace {

using graph::OpKind;
using graph::Stage;

// Of devices, by what they cannot compute of a stage: a product's name, or "" for anything else.
using Unable = std::map<Stage, std::map<std::string, std::set<std::string>>>;

class Giver {
 public:
  Giver(Plan& plan, const graph::Graph& graph, const CanCompute& can_compute)
      : plan_(plan), graph_(graph), can_compute_(can_compute) {}

  Result<std::vector<std::string>> run() {
    RETURN_IF_ERROR(find_unable());
    for (RowsBucket& bucket : plan_.buckets) {
      std::vector<Placement> more;
      for (Placement& placement : bucket.placements) {
        if (unable_.contains(placement.stage)) take_away(placement, more);
      }
      if (unable_.contains(Stage::kG1)) share_attention(bucket);
      bucket.placements.insert(bucket.placements.end(), more.begin(), more.end());
    }
    std::vector<std::string> lines;
    for (const auto& [device, names] : lost_) {
      lines.push_back(fmt::format("{} cannot compute {}", device, fmt::join(names, ", ")));
    }
    return lines;
  }

 private:
  Status find_unable() {
    for (size_t id = 0; id < graph_.ops.size(); ++id) {
      const auto op = static_cast<graph::OpId>(id);
      size_t able = 0;
      for (size_t device = 0; device < plan_.devices.size(); ++device) {
        if (can_compute_(device, op)) {
          ++able;
          continue;
        }
        const graph::Op& what = graph_.op(op);
        const std::string product =
            what.kind == OpKind::kMatMul ? std::string(product_name(graph_, op)) : "";
        unable_[what.stage][product].insert(plan_.devices[device]);
        lost_[plan_.devices[device]].insert(product.empty() ? std::string(to_string(what.kind))
                                                            : product);
      }
      if (able > 0) continue;
      return make_error(ErrorCode::kUnsupported, "no device of {} can compute {} ({})",
                        fmt::join(plan_.devices, ", "), to_string(graph_.op(op).kind),
                        graph_.tensor(graph_.op(op).output).name);
    }
    return {};
  }

  // Without these devices' parts; if none is left, whole on the first device that is not among
  // them.
  void leave_out(Placement& placement, const std::set<std::string>& devices) const {
    std::erase_if(placement.parts, [&](const Part& part) { return devices.contains(part.device); });
    if (placement.parts.empty()) {
      const auto other = std::find_if(plan_.devices.begin(), plan_.devices.end(),
                                      [&](const auto& name) { return !devices.contains(name); });
      if (other != plan_.devices.end()) placement.parts.push_back({*other, 1, false});
    }
    if (placement.parts.size() == 1) placement.cut = Cut::kNone;
  }

  void take_away(Placement& placement, std::vector<Placement>& more) const {
    const auto& by_name = unable_.at(placement.stage);
    const auto has = [](const Placement& where, const std::set<std::string>& devices) {
      return std::any_of(where.parts.begin(), where.parts.end(),
                         [&](const Part& part) { return devices.contains(part.device); });
    };
    for (const auto& [name, devices] : by_name) {
      if (!has(placement, devices)) continue;
      if (name.empty() || placement.op == name) {
        leave_out(placement, devices);
      } else if (placement.op.empty()) {
        Placement own = placement;
        own.op = name;
        own.join_chunks = 1;
        own.delay_us = 0;
        if (own.cut == Cut::kPaired) own.cut = Cut::kWeightCentric;
        leave_out(own, devices);
        more.push_back(std::move(own));
      }
    }
  }

  // Paired, it would be computed where queries are: on a device that lost these, nothing of it.
  static void share_attention(RowsBucket& bucket) {
    for (Placement& placement : bucket.placements) {
      if (placement.stage == Stage::kAttention && placement.cut == Cut::kPaired) {
        placement.cut = Cut::kWeightCentric;
      }
    }
  }

  Plan& plan_;
  const graph::Graph& graph_;
  const CanCompute& can_compute_;
  Unable unable_;
  std::map<std::string, std::set<std::string>> lost_;
};

}  // namespace

Result<std::vector<std::string>> give_to_others(Plan& plan, const graph::Graph& graph,
                                                const CanCompute& can_compute) {
  return Giver(plan, graph, can_compute).run();
}

}  // namespace troika::plan
