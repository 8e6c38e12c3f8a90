// What there is to decide in a pass: the products of a layer and of the head, the devices that can
// have them, and buckets of a plan put together from such decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troika/planner/model_plan.h"
#include "troika/planner/operator_plan.h"
#include "troika/planner/pass_costs.h"

namespace troika::planner {

// A product as it occurs in all layers, or in the head.
struct Site {
  graph::Stage stage = graph::Stage::kG1;
  std::string name;  // "gate"
  int64_t n = 0;
  int64_t k = 0;
  double weight_bits = 0;  // in the mean of the layers
};

// Products of the same input: q, k, v or gate, up. They are divided alike.
struct SiteGroup {
  std::vector<size_t> sites;
  int64_t n = 0;  // of all together
  int64_t k = 0;
  double weight_bits = 0;
};

// How a group is computed.
struct Choice {
  plan::Cut cut = plan::Cut::kNone;
  std::vector<size_t> devices;
  std::vector<double> shares;
};

// Borrows the graph and the cost model.
class PassSpace {
 public:
  // kUnsupported if no device computes attention and what else is no product.
  static Result<PassSpace> create(const graph::Graph& graph, const cost::CostModel& cost,
                                  const PassRequest& request, bool operand_order = true);

  const graph::Graph& graph() const { return *graph_; }
  const ChainCost& cost() const { return cost_; }
  const PassRequest& request() const { return request_; }
  const std::vector<device::DeviceInfo>& infos() const { return infos_; }
  const std::vector<Site>& sites() const { return sites_; }
  const std::vector<SiteGroup>& groups() const { return groups_; }
  // Where attention and everything that is no product is done soonest.
  size_t home() const { return home_; }
  // What attention over so many rows of this pass takes in one layer; HUGE_VAL if the device cannot
  // have it.
  double attention_us(size_t device, int64_t rows) const;
  // What is no product, attention included, takes in one layer of this pass; HUGE_VAL if the device
  // cannot have it.
  double other_us(size_t device) const { return other_us_[device]; }
  // Whether a device can be one's home.
  bool can_host(size_t device) const;

  // The product that a group is for so many rows of this pass; the head's has the rows of wanted
  // logits.
  cost::Product product(const SiteGroup& group, int64_t rows) const;
  bool can(size_t device, const SiteGroup& group) const;

  // Everything on `home` but the products, which go where `choices` say, by group.
  plan::RowsBucket bucket(size_t home, const std::vector<Choice>& choices) const;
  // Products on `device` where it can have them, the rest on `home`: by group.
  std::vector<Choice> alone(size_t device, size_t home) const;

  // A device's part of a placement, with the operand in place that suits it.
  plan::Part part(size_t device, double share) const;
  // The device of this name.
  size_t device(const std::string& name) const;
  bool is_head(const SiteGroup& group) const {
    return sites_[group.sites.front()].stage == graph::Stage::kHead;
  }
  // How a bucket computes a group in all chunks, or in one of them if that has its own placement.
  Choice choice(const plan::RowsBucket& bucket, size_t group, int32_t chunk = -1) const;
  // Gives it another one.
  void set_choice(plan::RowsBucket& bucket, size_t group, const Choice& choice,
                  int32_t chunk = -1) const;

 private:
  PassSpace(const graph::Graph& graph, const cost::CostModel& cost, const PassRequest& request,
            bool operand_order);
  void find_sites();
  std::optional<size_t> find_home() const;
  // What is no product takes in one layer; HUGE_VAL if the device cannot have it.
  double other_work_us(size_t device) const;

  const graph::Graph* graph_;
  ChainCost cost_;
  PassRequest request_;
  std::vector<device::DeviceInfo> infos_;
  std::vector<Site> sites_;
  std::vector<SiteGroup> groups_;
  bool operand_order_ = true;
  std::vector<double> other_us_;  // by device: see other_work_us()
  size_t home_ = 0;
};

// A division that the operator solver found, as a choice.
Choice choice_of(const Division& division, const cost::CostModel& cost);

}  // namespace troika::planner
