#include "troika/forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "troika/forecast/loaded_cost.h"

namespace troika::forecast {
namespace {

using planner::PassRequest;

struct Bits {
  double weight = 0;
  double head = 0;
};

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double energy_j(const planner::Forecast& pass) {
  return 1e-3 * (sum(pass.energy_mj) + pass.idle_mj);
}

Bits bits_of(const Question& question, const soc::Soc& soc) {
  const auto& stored = soc.stored_weights;
  Bits bits;
  bits.weight = question.weight_bits > 0 ? question.weight_bits : stored ? stored->bits.value : 4;
  bits.head = question.head_bits > 0     ? question.head_bits
              : question.weight_bits > 0 ? question.weight_bits
              : stored                   ? stored->head_bits.value
                                         : bits.weight;
  return bits;
}

PassRequest pass_request(const Question& question, Bits bits, int64_t rows, int64_t depth) {
  PassRequest request;
  request.rows = rows;
  request.depth = depth;
  request.sync = question.plan_sync.value_or(question.sync);
  request.weight_bits = bits.weight;
  request.head_bits = bits.head;
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

Result<std::vector<sim::Load>> loads_of(const cost::DescribedCost& chip, const Question& question) {
  std::vector<sim::Load> loads;
  for (const Frames& frames : question.frames) {
    const auto unit = chip.soc().unit(frames.unit);
    if (!unit) {
      return make_error(ErrorCode::kInvalidArgument, "frames on '{}', which {} does not have",
                        frames.unit.substr(0, 60), chip.soc().name);
    }
    const bool sound = frames.per_second >= 0.1 && frames.per_second <= 1000 &&
                       frames.ms >= 0.001 && frames.ms <= 1e4 && frames.gbps >= 0 &&
                       frames.gbps <= 1e5;
    if (!sound) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} frames a second of {} ms and {} GB/s; 0.1 to 1000, 0.001 to 10000, and "
                        "0 to 100000",
                        frames.per_second, frames.ms, frames.gbps);
    }
    sim::Load load;
    load.device = static_cast<int32_t>(*unit);
    load.period_us = 1e6 / frames.per_second;
    load.work_us = 1e3 * frames.ms;
    load.demand_gbps = frames.gbps;
    load.active_w = chip.run_facts(*unit).compute_w;
    loads.push_back(load);
  }
  return loads;
}

void add_shares(const planner::Forecast& pass, double UnitUse::*share, std::vector<UnitUse>& out) {
  double all = 0;
  for (const int64_t bytes : pass.weight_bytes) all += static_cast<double>(bytes);
  for (size_t d = 0; d < out.size() && all > 0; ++d) {
    out[d].*share = static_cast<double>(pass.weight_bytes[d]) / all;
  }
}

// Of weights as they are stored, and of keys and values in 16 bits.
double memory_gb(const graph::Graph& graph, Bits bits, int64_t tokens) {
  double total_bits = 0;
  std::set<const model::Weight*> counted;  // a tied head is the embedding
  for (const graph::Op& op : graph.ops) {
    const auto width = [&](graph::TensorId id) {
      return static_cast<double>(graph.tensor(id).width);
    };
    if (op.weight != nullptr && !counted.insert(op.weight).second) continue;
    if (op.kind == graph::OpKind::kMatMul) {
      const double each = op.stage == graph::Stage::kHead ? bits.head : bits.weight;
      total_bits += each * width(op.output) * width(op.inputs[0]);
    } else if (op.kind == graph::OpKind::kEmbed && op.weight != nullptr) {
      total_bits += bits.head * static_cast<double>(op.weight->rows * op.weight->cols);
    } else if (op.kind == graph::OpKind::kKvWrite) {
      for (const graph::TensorId input : op.inputs) {
        total_bits += 16 * width(input) * static_cast<double>(tokens);
      }
    }
  }
  return total_bits / 8e9;
}

// Plans on the idle chip, runs on `running`.
class Forecaster {
 public:
  Forecaster(const ShapedModel& model, const cost::DescribedCost& chip,
             const cost::CostModel& running, const Question& question)
      : model_(model),
        chip_(chip),
        running_(running),
        question_(question),
        bits_(bits_of(question, chip.soc())),
        turbo_left_mj_(chip.chip_facts().turbo_mj) {
    for (const cost::DeviceFacts& facts : chip.devices()) {
      UnitUse use;
      use.name = facts.name;
      answer_.units.push_back(std::move(use));
    }
    answer_.weight_bits = bits_.weight;
    answer_.head_bits = bits_.head;
  }

  Status check_memory() {
    answer_.memory_gb = memory_gb(model_.graph, bits_, question_.prompt + question_.generate);
    const auto& capacity = chip_.soc().memory.capacity;
    if (!capacity || answer_.memory_gb <= *capacity) return {};
    return make_error(ErrorCode::kUnsupported,
                      "the model needs {:.1f} GB for its weights and {} tokens, and {} has {} GB",
                      answer_.memory_gb, question_.prompt + question_.generate, chip_.soc().name,
                      capacity->value);
  }

  Status set_loads() {
    ASSIGN_OR_RETURN(loads_, loads_of(chip_, question_));
    return {};
  }

  Status prefill(const planner::Strategy& strategy) {
    PassRequest request = pass_request(question_, bits_, question_.prompt, 0);
    ASSIGN_OR_RETURN(answer_.prefill_bucket, planned(strategy, request, answer_.prefill_plan));
    request.build_graphs = strategy.rows == planner::Rows::kBuilt;
    request.turbo_mj = turbo_left_mj_;
    ASSIGN_OR_RETURN(const planner::Forecast pass,
                     run(answer_.prefill_bucket, request, question_.with_trace));
    const double us = pass.us;
    answer_.ttft_ms = us / 1e3;
    answer_.ttft_spread = {pass.mean_us / 1e3, pass.p90_us / 1e3};
    answer_.prefill_tok_s = static_cast<double>(question_.prompt) / us * 1e6;
    answer_.prefill_energy_j = energy_j(pass);
    answer_.prefill_power_w = answer_.prefill_energy_j / us * 1e6;
    add_shares(pass, &UnitUse::prefill_share, answer_.units);
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      answer_.units[d].prefill_busy_ms = pass.busy_us[d] / 1e3;
      answer_.units[d].energy_j += pass.energy_mj[d] / 1e3;
      answer_.units[d].weights_gb = static_cast<double>(pass.weight_bytes[d]) / 1e9;
    }
    answer_.trace = pass.trace;
    answer_.prefill_frames = pass.loads_done;
    turbo_left_mj_ = std::max(0.0, turbo_left_mj_ - 1e3 * answer_.prefill_energy_j);
    PrefillWork work;
    work.rows = question_.prompt;
    work.weight_bits = bits_.weight;
    work.head_bits = bits_.head;
    work.activation_bits = request.activation_bits;
    work.integer_activations = request.integer_activations;
    ASSIGN_OR_RETURN(answer_.bound, prefill_bound(model_.graph, running_, work));
    return {};
  }

  // Costs of a token rise linearly with the depth: both ends tell the mean. While the turbo lasts a
  // token is as fast as its first, then as one without.
  Status decode(const planner::Strategy& strategy) {
    PassRequest request = pass_request(question_, bits_, 1, question_.prompt);
    ASSIGN_OR_RETURN(answer_.decode_bucket, planned(strategy, request, answer_.decode_plan));
    ASSIGN_OR_RETURN(Token token, mean_token(request, 0));
    if (answer_.trace) RETURN_IF_ERROR(add_token(request));
    const auto tokens = static_cast<double>(question_.generate);
    if (turbo_left_mj_ > 0) {
      ASSIGN_OR_RETURN(const Token fast, mean_token(request, HUGE_VAL));
      const double part = std::min(1.0, turbo_left_mj_ / (1e3 * fast.energy_j * tokens));
      token.blend(fast, part);
    }
    answer_.tpot_ms = token.us / 1e3;
    answer_.tpot_spread = {token.mean_us / 1e3, token.p90_us / 1e3};
    answer_.decode_tok_s = 1e6 / token.us;
    answer_.decode_power_w = token.energy_j / token.us * 1e6;
    answer_.energy_j = answer_.prefill_energy_j + tokens * token.energy_j;
    answer_.power_w = answer_.energy_j / (answer_.ttft_ms + tokens * answer_.tpot_ms) * 1e3;
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      answer_.units[d].decode_busy_ms = token.busy_us[d] / 1e3;
      answer_.units[d].energy_j += tokens * token.unit_mj[d] / 1e3;
    }
    return check_sessions();
  }

  Answer take() { return std::move(answer_); }

 private:
  // The mean of the generated ones.
  struct Token {
    double us = 0;
    double mean_us = 0;
    double p90_us = 0;
    double energy_j = 0;
    std::vector<double> busy_us;
    std::vector<double> unit_mj;

    void blend(const Token& other, double part) {
      const auto mix = [part](double& own, double its) { own += part * (its - own); };
      mix(us, other.us);
      mix(mean_us, other.mean_us);
      mix(p90_us, other.p90_us);
      mix(energy_j, other.energy_j);
      for (size_t d = 0; d < busy_us.size(); ++d) mix(busy_us[d], other.busy_us[d]);
      for (size_t d = 0; d < unit_mj.size(); ++d) mix(unit_mj[d], other.unit_mj[d]);
    }
  };

  static Token token_of(const planner::Forecast& pass) {
    return {pass.us, pass.mean_us, pass.p90_us, energy_j(pass), pass.busy_us, pass.energy_mj};
  }

  Result<Token> mean_token(PassRequest request, double turbo_mj) {
    request.turbo_mj = turbo_mj;
    ASSIGN_OR_RETURN(const planner::Forecast first, run(answer_.decode_bucket, request, false));
    add_shares(first, &UnitUse::decode_share, answer_.units);
    answer_.decode_frames = first.loads_done;
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      double& held = answer_.units[d].weights_gb;
      held = std::max(held, static_cast<double>(first.weight_bytes[d]) / 1e9);
    }
    request.depth = question_.prompt + question_.generate - 1;
    ASSIGN_OR_RETURN(const planner::Forecast last, run(answer_.decode_bucket, request, false));
    Token token = token_of(first);
    token.blend(token_of(last), 0.5);
    return token;
  }

  // To the trace, as the pass after the prefill.
  Status add_token(PassRequest request) {
    request.turbo_mj = turbo_left_mj_;
    ASSIGN_OR_RETURN(const planner::Forecast token, run(answer_.decode_bucket, request, true));
    if (!token.trace) return {};
    const Duration after(static_cast<int64_t>(answer_.ttft_ms * 1e6));
    for (TraceEvent event : token.trace->events) {
      event.pass = 1;
      event.queued += after;
      event.start += after;
      event.end += after;
      answer_.trace->events.push_back(std::move(event));
    }
    return {};
  }

  Result<plan::RowsBucket> planned(const planner::Strategy& strategy, const PassRequest& request,
                                   std::string& reason) {
    ASSIGN_OR_RETURN(planner::PassPlan plan,
                     planner::plan_pass(model_.graph, chip_, strategy, request));
    reason = std::move(plan.reason);
    answer_.evaluations += plan.evaluations;
    return std::move(plan.bucket);
  }

  Result<planner::Forecast> run(const plan::RowsBucket& bucket, PassRequest request,
                                bool with_trace) const {
    request.sync = question_.sync;
    request.fidelity = question_.fidelity;
    request.variation = question_.variation;
    request.loads = loads_;
    return planner::evaluate(model_.graph, running_, bucket, request, with_trace);
  }

  Status check_sessions() {
    for (size_t d = 0; d < answer_.units.size(); ++d) {
      const soc::Unit& unit = chip_.soc().units[d];
      UnitUse& use = answer_.units[d];
      if (!unit.session_memory || use.weights_gb <= 0) continue;
      use.sessions = static_cast<int64_t>(std::ceil(use.weights_gb / *unit.session_memory));
      const auto most = static_cast<int64_t>(unit.sessions ? unit.sessions->value : 1);
      if (use.sessions <= most) continue;
      return make_error(ErrorCode::kUnsupported,
                        "the plan gives {} {:.2f} GB of weights, and {} of its sessions of {} GB "
                        "there can be",
                        unit.name, use.weights_gb, most, unit.session_memory->value);
    }
    return {};
  }

  const ShapedModel& model_;
  const cost::DescribedCost& chip_;
  const cost::CostModel& running_;
  const Question& question_;
  Bits bits_;
  double turbo_left_mj_ = 0;
  std::vector<sim::Load> loads_;
  Answer answer_;
};

}  // namespace

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
  RETURN_IF_ERROR(forecaster.check_memory());
  RETURN_IF_ERROR(forecaster.set_loads());
  RETURN_IF_ERROR(forecaster.prefill(strategy));
  RETURN_IF_ERROR(forecaster.decode(strategy));
  return forecaster.take();
}

}  // namespace troika::forecast
