#include "troika/reproduce/runs.h"

#include <numeric>

#include "troika/forecast/bound.h"
#include "troika/forecast/loaded_cost.h"
#include "troika/soc/soc.h"

namespace troika::reproduce {
namespace {

using published::Run;

sim::Sync sync_of(std::string_view name) {
  if (name == "predict") return sim::Sync::kPredict;
  return name == "blocking" ? sim::Sync::kBlocking : sim::Sync::kQueue;
}

// By unit, of the arithmetic of products: attention is a stage of its own.
std::vector<double> product_shares(const Trace& trace, const cost::CostModel& cost) {
  std::vector<double> macs(cost.devices().size(), 0);
  for (const TraceEvent& event : trace.events) {
    if (event.stage != "G1" && event.stage != "G2" && event.stage != "head") continue;
    for (size_t i = 0; i < macs.size(); ++i) {
      if (event.device == cost.devices()[i].name) macs[i] += static_cast<double>(event.macs);
    }
  }
  const double all = std::accumulate(macs.begin(), macs.end(), 0.0);
  for (double& one : macs) one = all > 0 ? one / all : 0;
  return macs;
}

template <class T>
Result<const T*> kept(std::mutex& mutex, std::map<std::string, std::unique_ptr<T>>& map,
                      const std::string& key, const std::function<Result<T>()>& make) {
  {
    const std::lock_guard lock(mutex);
    const auto found = map.find(key);
    if (found != map.end()) return found->second.get();
  }
  ASSIGN_OR_RETURN(T made, make());
  const std::lock_guard lock(mutex);
  // Another thread may have been faster; its value is the same.
  return map.try_emplace(key, std::make_unique<T>(std::move(made))).first->second.get();
}

}  // namespace

double PassResult::energy_j() const {
  return 1e-3 *
         std::accumulate(forecast.energy_mj.begin(), forecast.energy_mj.end(), forecast.idle_mj);
}

std::string_view RunKey::sync() const {
  return decode && run->sync == "predict" ? std::string_view("queue") : run->sync;
}

std::string_view RunKey::plan_sync() const {
  return run->plan_sync.empty() ? sync() : std::string_view(run->plan_sync);
}

std::string RunKey::text() const {
  std::string text = fmt::format("{}|{}|{}|{}|{}|{}|{}", run->soc, run->stack, run->strategy,
                                 sync(), plan_sync(), shape, prompt);
  if (decode) text += fmt::format("|{}", run->output);
  if (run->load)
    text += fmt::format("|{} {} {}", run->load->unit, run->load->part, run->load->gbps);
  return text;
}

Result<const cost::DescribedCost*> Runs::chip(const Run& run) {
  return kept<cost::DescribedCost>(
      mutex_, chips_, run.soc + "|" + run.stack, [&]() -> Result<cost::DescribedCost> {
        ASSIGN_OR_RETURN(const soc::Soc soc, socs_(run.soc));
        ASSIGN_OR_RETURN(soc::Soc stacked, soc::with_stack(soc, run.stack));
        return cost::DescribedCost(std::move(stacked));
      });
}

Result<const forecast::ShapedModel*> Runs::model(const std::string& shape) {
  return kept<forecast::ShapedModel>(mutex_, models_, shape,
                                     [&] { return forecast::shaped_model(shape); });
}

Result<const PassResult*> Runs::pass(const RunKey& key) {
  return kept<PassResult>(mutex_, passes_, key.text(), [&] { return simulate(key); });
}

planner::PassRequest Runs::request(const RunKey& key, const soc::Soc& soc) const {
  planner::PassRequest request;
  request.rows = key.decode ? 1 : key.prompt;
  request.depth = key.decode ? key.prompt : 0;
  request.activation_bits = 16;
  request.weight_bits = 4;
  if (soc.stored_weights) {
    request.weight_bits = soc.stored_weights->bits;
    request.head_bits = soc.stored_weights->head_bits;
  }
  // What the published systems did for one token on units without another path.
  request.integer_activations = key.decode;
  request.budget = budget_;
  return request;
}

Result<PassResult> Runs::simulate(const RunKey& key) {
  const Run& run = *key.run;
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, this->chip(run));
  ASSIGN_OR_RETURN(const forecast::ShapedModel* model, this->model(key.shape));
  ASSIGN_OR_RETURN(const planner::Strategy strategy, strategy_of(run.strategy));
  planner::PassRequest request = this->request(key, chip->soc());
  request.sync = sync_of(key.plan_sync());
  ASSIGN_OR_RETURN(const planner::PassPlan plan,
                   planner::plan_pass(model->graph, *chip, strategy, request));
  forecast::OtherLoad load;
  if (run.load) {
    const auto unit = chip->soc().unit(run.load->unit);
    if (!unit) {
      return make_error(ErrorCode::kInvalidArgument, "the load is on '{}', which {} has not",
                        run.load->unit, run.soc);
    }
    load = {*unit, run.load->part, run.load->gbps};
  }
  const forecast::LoadedCost loaded(*chip, load);
  const cost::CostModel* running = chip;
  if (run.load) running = &loaded;
  request.sync = sync_of(key.sync());
  request.build_graphs = strategy.rows == planner::Rows::kBuilt;
  // A token's costs rise linearly with the depth: the middle one tells the mean.
  if (key.decode) request.depth += run.output / 2;
  PassResult result;
  result.plan = plan.name;
  result.evaluations = plan.evaluations;
  result.rows = request.rows;
  result.layers = std::max<int64_t>(1, model->graph.n_layers);
  ASSIGN_OR_RETURN(result.forecast,
                   planner::evaluate(model->graph, *running, plan.bucket, request, true));
  result.product_share = product_shares(*result.forecast.trace, *chip);
  result.forecast.trace.reset();
  return result;
}

Result<double> Runs::bound_us(const RunKey& key) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, this->chip(*key.run));
  ASSIGN_OR_RETURN(const forecast::ShapedModel* model, this->model(key.shape));
  const planner::PassRequest request = this->request(key, chip->soc());
  forecast::PrefillWork work;
  work.rows = request.rows;
  work.weight_bits = request.weight_bits;
  work.head_bits = request.head_bits;
  work.activation_bits = request.activation_bits;
  ASSIGN_OR_RETURN(const forecast::Bound bound, forecast::prefill_bound(model->graph, *chip, work));
  return bound.us;
}

}  // namespace troika::reproduce
