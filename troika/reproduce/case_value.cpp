#include "troika/reproduce/case_value.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "troika/planner/operator_plan.h"
#include "troika/soc/bandwidth.h"

namespace troika::reproduce {
namespace {

using published::Case;
using published::Metric;
using published::Run;

Result<size_t> unit_of_chip(const cost::DescribedCost& chip, const std::string& name) {
  const auto unit = chip.soc().unit(name);
  if (unit) return *unit;
  return make_error(ErrorCode::kInvalidArgument, "{} has no unit '{}'", chip.soc().name, name);
}

// ---- one product

cost::Product product_of(const Run& run) {
  cost::Product product;
  product.m = run.tokens;
  product.n = run.outputs;
  product.k = run.inputs;
  return product;
}

Result<planner::Division> divided(const Run& run, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(run));
  ASSIGN_OR_RETURN(const planner::Strategy strategy, strategy_of(run.strategy));
  ASSIGN_OR_RETURN(const planner::OperatorPlan plan,
                   planner::plan_operator(*chip, product_of(run), strategy));
  return plan.chosen;
}

Result<double> operator_share(const Run& run, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(run));
  ASSIGN_OR_RETURN(const size_t unit, unit_of_chip(*chip, run.unit));
  ASSIGN_OR_RETURN(const planner::Division division, divided(run, runs));
  double share = 0;
  for (const planner::Slice& slice : division.slices) {
    if (slice.device == unit) share += slice.share;
  }
  return share;
}

// With the weight in place, and in the better order.
Result<double> operand_order_gain(const Run& run, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(run));
  ASSIGN_OR_RETURN(const planner::Division better, divided(run, runs));
  cost::Product product = product_of(run);
  product.weight_stationary = true;
  const auto work = chip->product(better.slices.front().device, product);
  if (!work) return make_error(ErrorCode::kUnsupported, "no path for this product");
  return (work->work_us() + work->fixed_us) / better.slowest_us;
}

Result<double> operator_value(const Case& one, Runs& runs) {
  if (one.metric == Metric::kOperatorShare) return operator_share(one.input, runs);
  if (one.metric == Metric::kOperandOrderGain) return operand_order_gain(one.input, runs);
  ASSIGN_OR_RETURN(const planner::Division division, divided(one.input, runs));
  if (one.metric == Metric::kOperatorUs) return division.slowest_us;
  ASSIGN_OR_RETURN(const planner::Division other, divided(*one.against, runs));
  return other.slowest_us / division.slowest_us;
}

// ---- the chip itself

Result<double> chip_value(const Case& one, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(one.input));
  uint32_t mask = 0;
  double alone = 0;
  double kept = 0;
  for (const std::string& name : one.input.units) {
    ASSIGN_OR_RETURN(const size_t unit, unit_of_chip(*chip, name));
    mask |= 1u << unit;
    alone += chip->devices()[unit].bandwidth_gbps;
    kept += chip->run_facts(unit).speed_among_others;
  }
  if (one.metric == Metric::kMemoryGbps) return chip->shared_gbps(mask);
  if (one.metric == Metric::kRetainedSum) return kept;
  return std::max(1.0, alone / chip->shared_gbps(mask));
}

// ---- passes of a model

RunKey key(const Run& run, const std::string& shape, int64_t prompt, bool decode) {
  RunKey result;
  result.run = &run;
  result.shape = shape;
  result.prompt = prompt;
  result.decode = decode;
  return result;
}

bool of_decode(Metric metric) {
  return metric == Metric::kDecodeTokS || metric == Metric::kDecodeGain ||
         metric == Metric::kDecodeShare || metric == Metric::kTokenEnergyJ;
}
bool of_both(Metric metric) { return metric == Metric::kEnergySaving; }
bool of_peak(Metric metric) {
  return metric == Metric::kPrefillTokSPeak || metric == Metric::kPrefillGainPeak;
}

// Of the products of the layers, by their time on each unit that has them all, at the speed in
// arithmetic that it keeps beside the others: parts in proportion to the speeds end together.
Result<double> balance_share(const RunKey& key, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(*key.run));
  ASSIGN_OR_RETURN(const forecast::ShapedModel* model, runs.model(key.shape));
  ASSIGN_OR_RETURN(const size_t wanted, unit_of_chip(*chip, key.run->unit));
  double all = 0;
  double own = 0;
  for (size_t unit = 0; unit < chip->devices().size(); ++unit) {
    double us = 0;
    for (const graph::Op& op : model->graph.ops) {
      if (op.kind != graph::OpKind::kMatMul || op.stage == graph::Stage::kHead) continue;
      cost::Product product;
      product.m = key.prompt;
      product.n = model->graph.tensor(op.output).width;
      product.k = model->graph.tensor(op.inputs[0]).width;
      const auto work = chip->product(unit, product);
      us += !work ? HUGE_VAL
                  : std::max(work->compute_us / chip->run_facts(unit).speed_among_others,
                             work->memory_us);
    }
    all += 1 / us;
    if (unit == wanted) own = 1 / us;
  }
  return own / all;
}

// What no product takes of a prefill on one unit.
Result<double> other_work_share(const RunKey& key, const PassResult& pass, Runs& runs) {
  ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs.chip(*key.run));
  ASSIGN_OR_RETURN(const forecast::ShapedModel* model, runs.model(key.shape));
  constexpr std::string_view kSingle = "single:";
  ASSIGN_OR_RETURN(const size_t unit,
                   unit_of_chip(*chip, key.run->strategy.substr(
                                           std::min(kSingle.size(), key.run->strategy.size()))));
  double us = 0;
  for (const graph::Op& op : model->graph.ops) {
    if (op.kind != graph::OpKind::kMatMul || op.stage == graph::Stage::kHead) continue;
    cost::Product product;
    product.m = pass.rows;
    product.n = model->graph.tensor(op.output).width;
    product.k = model->graph.tensor(op.inputs[0]).width;
    const auto work = chip->product(unit, product);
    if (work) us += work->work_us();
  }
  return 1 - us / pass.forecast.us;
}

// Of one prompt and one shape.
class OneRun {
 public:
  OneRun(const Case& one, const std::string& shape, int64_t prompt, Runs& runs)
      : case_(one), shape_(shape), prompt_(prompt), runs_(runs) {}

  Result<double> value() {
    if (of_both(case_.metric)) return saving(true);
    if (case_.metric == Metric::kPrefillEnergySaving) return saving(false);
    const RunKey own = key(case_.input, shape_, prompt_, of_decode(case_.metric));
    if (case_.metric == Metric::kBalanceShare) return balance_share(own, runs_);
    ASSIGN_OR_RETURN(const PassResult* pass, runs_.pass(own));
    if (case_.against) {
      const RunKey other = key(*case_.against, shape_, prompt_, of_decode(case_.metric));
      ASSIGN_OR_RETURN(const PassResult* against, runs_.pass(other));
      return against->forecast.us / pass->forecast.us;
    }
    return plain(own, *pass);
  }

 private:
  Result<double> plain(const RunKey& own, const PassResult& pass) {
    const planner::Forecast& forecast = pass.forecast;
    switch (case_.metric) {
      case Metric::kBuildMs:
        return forecast.build_us / 1e3;
      case Metric::kTtftS:
        return forecast.us / 1e6;
      case Metric::kPrefillTokS:
      case Metric::kPrefillTokSPeak:
      case Metric::kDecodeTokS:
        return static_cast<double>(pass.rows) / forecast.us * 1e6;
      case Metric::kLayerMs:
        return forecast.us / 1e3 / static_cast<double>(pass.layers);
      case Metric::kPrefillPowerW:
        return pass.energy_j() / forecast.us * 1e6;
      case Metric::kTokenEnergyJ:
        return pass.energy_j();
      case Metric::kOtherWorkShare:
        return other_work_share(own, pass, runs_);
      case Metric::kBoundGain: {
        ASSIGN_OR_RETURN(const double bound_us, runs_.bound_us(own));
        return forecast.us / bound_us;
      }
      default:
        return of_unit(pass);
    }
  }

  Result<double> of_unit(const PassResult& pass) {
    ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs_.chip(case_.input));
    ASSIGN_OR_RETURN(const size_t unit, unit_of_chip(*chip, case_.input.unit));
    const planner::Forecast& forecast = pass.forecast;
    if (case_.metric == Metric::kProductShare) return pass.product_share[unit];
    if (case_.metric == Metric::kUnitPowerW) {
      const double us = forecast.busy_us[unit];
      return us > 0 ? forecast.energy_mj[unit] / us * 1e3 : 0;
    }
    const double all =
        std::accumulate(forecast.weight_bytes.begin(), forecast.weight_bytes.end(), 0.0);
    return all > 0 ? static_cast<double>(forecast.weight_bytes[unit]) / all : 0;
  }

  Result<double> energy(const Run& run, bool with_answer) {
    ASSIGN_OR_RETURN(const PassResult* prompt, runs_.pass(key(run, shape_, prompt_, false)));
    if (!with_answer) return prompt->energy_j();
    ASSIGN_OR_RETURN(const PassResult* token, runs_.pass(key(run, shape_, prompt_, true)));
    return prompt->energy_j() + static_cast<double>(run.output) * token->energy_j();
  }

  Result<double> saving(bool with_answer) {
    ASSIGN_OR_RETURN(const double own, energy(case_.input, with_answer));
    ASSIGN_OR_RETURN(const double other, energy(*case_.against, with_answer));
    return 100 * (1 - own / other);
  }

  const Case& case_;
  std::string shape_;
  int64_t prompt_;
  Runs& runs_;
};

bool of_product(Metric metric) {
  return metric == Metric::kOperatorUs || metric == Metric::kOperatorShare ||
         metric == Metric::kOperatorGain || metric == Metric::kOperandOrderGain;
}
bool of_chip(Metric metric) {
  return metric == Metric::kMemoryGbps || metric == Metric::kCoRunSlowdown ||
         metric == Metric::kRetainedSum;
}

}  // namespace

std::vector<RunKey> passes_of(const Case& one) {
  std::vector<RunKey> keys;
  const bool of_pass =
      !of_product(one.metric) && !of_chip(one.metric) && one.metric != Metric::kBalanceShare;
  if (!of_pass || !one.left_out.empty()) return keys;
  for (const Run* run : {&one.input, one.against ? &*one.against : nullptr}) {
    if (run == nullptr) continue;
    for (const std::string& shape : one.input.shapes) {
      for (const int64_t prompt : one.input.prompts) {
        if (!of_decode(one.metric)) keys.push_back(key(*run, shape, prompt, false));
        if (of_decode(one.metric) || of_both(one.metric)) {
          keys.push_back(key(*run, shape, prompt, true));
        }
      }
    }
  }
  return keys;
}

Result<double> simulated(const Case& one, Runs& runs) {
  if (of_product(one.metric)) return operator_value(one, runs);
  if (of_chip(one.metric)) return chip_value(one, runs);
  double sum = 0;
  double most = 0;
  double count = 0;
  for (const std::string& shape : one.input.shapes) {
    for (const int64_t prompt : one.input.prompts) {
      ASSIGN_OR_RETURN(const double value, OneRun(one, shape, prompt, runs).value());
      sum += value;
      most = std::max(most, value);
      ++count;
    }
  }
  return of_peak(one.metric) ? most : sum / count;
}

}  // namespace troika::reproduce
