// What published cases ran, run again on described chips: plans by the planner, times and energies
// on virtual time. Everything here is simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/cost/described_cost.h"
#include "troika/forecast/forecast.h"
#include "troika/planner/model_plan.h"
#include "troika/published/paper.h"

namespace troika::reproduce {

// A pass of one model with what was planned for it.
struct PassResult {
  planner::Forecast forecast;
  std::vector<double> product_share;  // of the products' arithmetic, by unit
  std::string plan;                   // its name: "paired, 4 chunks"
  int64_t evaluations = 0;            // schedules that were tried for it
  int64_t rows = 1;
  int64_t layers = 1;

  double energy_j() const;
};

// One run of a case: one shape, one prompt.
struct RunKey {
  const published::Run* run = nullptr;
  std::string shape;
  int64_t prompt = 0;
  bool decode = false;  // the pass of one token instead of the prompt's
  // How devices are joined. Who predicts waits in a prefill lets the order of queues do it for a
  // token, as HeteroInfer does.
  std::string_view sync() const;
  std::string_view plan_sync() const;  // what the plan was made for

  std::string text() const;  // the same for runs that are the same
};

// "default", or one of strategies of the planner, or "step:NAME": naive, activation-centric,
// operand-order and weight-centric, what HeteroInfer's ablation adds one after the other;
// unchunked, HeteroMosaic's tuned shares without micro-batches. kInvalidArgument for others.
Result<planner::Strategy> strategy_of(std::string_view name);

// Gives descriptions by name.
using SocSource = std::function<Result<soc::Soc>(std::string_view)>;

// Plans and simulates runs, each once. Any thread may ask.
class Runs {
 public:
  explicit Runs(SocSource socs, planner::Budget budget = {}) : socs_(std::move(socs)) {
    budget_ = budget;
  }

  // The chip under the run's stack. Lives as long as this object.
  Result<const cost::DescribedCost*> chip(const published::Run& run);
  Result<const forecast::ShapedModel*> model(const std::string& shape);
  Result<const PassResult*> pass(const RunKey& key);
  // The least time that the chip could need for the prompt, us.
  Result<double> bound_us(const RunKey& key);

 private:
  Result<PassResult> simulate(const RunKey& key);
  planner::PassRequest request(const RunKey& key, const soc::Soc& soc) const;

  SocSource socs_;
  planner::Budget budget_;
  std::mutex mutex_;  // of the maps; what they hold does not change
  std::map<std::string, std::unique_ptr<cost::DescribedCost>> chips_;
  std::map<std::string, std::unique_ptr<forecast::ShapedModel>> models_;
  std::map<std::string, std::unique_ptr<PassResult>> passes_;
};

}  // namespace troika::reproduce
