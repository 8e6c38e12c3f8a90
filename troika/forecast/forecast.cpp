#include "troika/forecast/forecast.h"

#include <algorithm>
#include <numeric>

#include "troika/forecast/loaded_cost.h"
#include "troika/model/synth.h"

namespace troika::forecast {
namespace {

using planner::PassRequest;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double energy_j(const planner::Forecast& pass) {
  return 1e-3 * (sum(pass.energy_mj) + pass.idle_mj);
}

PassRequest pass_request(const Question& question, int64_t rows, int64_t depth) {
  PassRequest request;
  request.rows = rows;
  request.depth = depth;
  request.sync = question.plan_sync.value_or(question.sync);
  request.weight_bits = question.weight_bits;
  request.activation_bits = 16;
  // What the published systems did for one token on units without another path.
  request.integer_activations = rows == 1;
  request.budget = question.budget;
  return request;
}

Result<OtherLoad> other_load(const cost::DescribedCost& chip, const Load& load) {
  const auto unit = chip.soc().unit(load.unit);
  if (!unit) {
    return make_error(ErrorCode::kInvalidArgument, "the load is on '{}', which {} does not have",
                      load.unit.substr(0, 60), chip.soc().name);
  }
  if (!(load.part >= 0 && load.part <= 0.99 && load.gbps >= 0 && load.gbps <= 1e5)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a load of {} of a unit's time and {} GB/s; 0 to 0.99 and 0 to 100000",
                      load.part, load.gbps);
  }
  return OtherLoad{*unit, load.part, load.gbps};
}

void add_shares(const planner::Forecast& pass, double UnitUse::*share, std::vector<UnitUse>& out) {
  double all = 0;
  for (const int64_t bytes : pass.weight_bytes) all += static_cast<double>(bytes);
  for (size_t d = 0; d < out.size() && all > 0; ++d) {
    out[d].*share = static_cast<double>(pass.weight_bytes[d]) / all;
  }
}

// Plans on the idle chip, runs on `running`.
class Forecaster {
 public:
  Forecaster(const ShapedModel& model, const cost::DescribedCost& chip,
             const cost::CostModel& running, const Question& question)
      : model_(model), chip_(chip), running_(running), question_(question) {
    for (const cost::DeviceFacts& facts : chip.devices()) {
      UnitUse use;
      use.name = facts.name;
      answer_.units.push_back(std::move(use));
    }
  }

  Status prefill(const planner::Strategy& strategy) {
    PassRequest request = pass_request(question_, question_.prompt, 0);
    ASSIGN_OR_RETURN(const planner::Forecast pass,
                     planned(strategy, request, answer_.prefill_plan));
    const double us = pass.us;
    answer_.ttft_ms = us / 1e3;
    answer_.prefill_tok_s = static_cast<double>(question_.prompt) / us * 1e6;
    answer_.prefill_energy_j = energy_j(pass);
    answer_.prefill_power_w = answer_.prefill_energy_j / us * 1e6;
    add_shares(pass, &UnitUse::prefill_share, answer_.units);
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      answer_.units[d].prefill_busy_ms = pass.busy_us[d] / 1e3;
      answer_.units[d].energy_j += pass.energy_mj[d] / 1e3;
    }
    answer_.prefill_trace = pass.trace;
    PrefillWork work;
    work.rows = question_.prompt;
    work.weight_bits = question_.weight_bits;
    ASSIGN_OR_RETURN(const Bound bound, prefill_bound(model_.graph, running_, work));
    answer_.bound_ms = bound.us / 1e3;
    return {};
  }

  // Costs of a token rise linearly with the depth: both ends tell the mean.
  Status decode(const planner::Strategy& strategy) {
    PassRequest request = pass_request(question_, 1, question_.prompt);
    ASSIGN_OR_RETURN(const planner::Forecast first,
                     planned(strategy, request, answer_.decode_plan));
    request.depth = question_.prompt + question_.generate - 1;
    request.sync = question_.sync;
    ASSIGN_OR_RETURN(const planner::Forecast last,
                     planner::evaluate(model_.graph, running_, bucket_, request));
    const double us = (first.us + last.us) / 2;
    const double token_j = (energy_j(first) + energy_j(last)) / 2;
    answer_.tpot_ms = us / 1e3;
    answer_.decode_tok_s = 1e6 / us;
    answer_.decode_power_w = token_j / us * 1e6;
    const auto tokens = static_cast<double>(question_.generate);
    answer_.energy_j = answer_.prefill_energy_j + tokens * token_j;
    answer_.power_w = answer_.energy_j / (answer_.ttft_ms + tokens * answer_.tpot_ms) * 1e3;
    add_shares(first, &UnitUse::decode_share, answer_.units);
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      answer_.units[d].decode_busy_ms = (first.busy_us[d] + last.busy_us[d]) / 2e3;
      answer_.units[d].energy_j += tokens * (first.energy_mj[d] + last.energy_mj[d]) / 2e3;
    }
    return {};
  }

  Answer take() { return std::move(answer_); }

 private:
  Result<planner::Forecast> planned(const planner::Strategy& strategy, PassRequest request,
                                    std::string& reason) {
    ASSIGN_OR_RETURN(planner::PassPlan plan,
                     planner::plan_pass(model_.graph, chip_, strategy, request));
    reason = plan.reason;
    answer_.evaluations += plan.evaluations;
    bucket_ = std::move(plan.bucket);
    request.sync = question_.sync;
    request.build_graphs = strategy.rows == planner::Rows::kBuilt;
    return planner::evaluate(model_.graph, running_, bucket_, request,
                             question_.with_trace && request.rows > 1);
  }

  const ShapedModel& model_;
  const cost::DescribedCost& chip_;
  const cost::CostModel& running_;
  const Question& question_;
  plan::RowsBucket bucket_;
  Answer answer_;
};

}  // namespace

Result<ShapedModel> shaped_model(std::string_view shape) {
  model::SynthOptions options;
  ASSIGN_OR_RETURN(options.shape, model::parse_shape(shape));
  options.mix.type = model::TensorType::kF16;  // no blocks that a width could miss
  ASSIGN_OR_RETURN(model::Model outline, model::outline_model(options));
  ShapedModel shaped;
  shaped.model = std::make_unique<model::Model>(std::move(outline));
  ASSIGN_OR_RETURN(shaped.graph, graph::build(*shaped.model));
  return shaped;
}

Result<Answer> forecast(const ShapedModel& model, const cost::DescribedCost& chip,
                        const Question& question) {
  if (question.prompt < 1 || question.prompt > planner::kMaxPassRows || question.generate < 1 ||
      question.generate > planner::kMaxPassRows) {
    return make_error(ErrorCode::kInvalidArgument, "{} tokens in and {} out; 1 to {} each",
                      question.prompt, question.generate, planner::kMaxPassRows);
  }
  ASSIGN_OR_RETURN(const planner::Strategy strategy, planner::strategy_from(question.strategy));
  OtherLoad load;
  if (question.load) {
    ASSIGN_OR_RETURN(load, other_load(chip, *question.load));
  }
  const LoadedCost loaded(chip, load);
  const cost::CostModel* running = &chip;
  if (question.load) running = &loaded;
  Forecaster forecaster(model, chip, *running, question);
  RETURN_IF_ERROR(forecaster.prefill(strategy));
  RETURN_IF_ERROR(forecaster.decode(strategy));
  return forecaster.take();
}

}  // namespace troika::forecast
