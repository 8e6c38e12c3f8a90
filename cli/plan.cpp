// troika plan: who should compute what, of one product or of a whole model, on a described chip or
// on this machine's devices.
#include "cli/chip.h"
#include "cli/operator_report.h"
#include "cli/plan_model.h"
#include "cli/verbs.h"
#include "troika/cost/described_cost.h"
#include "troika/planner/operator_plan.h"
#include "troika/soc/validate.h"

namespace troika::cli {
namespace {

// "4096x14336": outputs, inputs.
Status parse_weight(const std::string& text, cost::Product& product) {
  const size_t times = text.find('x');
  if (times == std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--weight: {} is not NxK, outputs and inputs, as in 4096x14336",
                      in_quotes(text));
  }
  constexpr IntegerRange kExtent{1, planner::kMaxWeightExtent};
  ASSIGN_OR_RETURN(product.n, parse_integer("--weight, N", text.substr(0, times), kExtent));
  ASSIGN_OR_RETURN(product.k, parse_integer("--weight, K", text.substr(times + 1), kExtent));
  return {};
}

class Plan final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Chip");
    flags.name_or_file(
        "--soc", soc_, "NAME",
        "A described chip, by name or as a file with '/' in its path or '.json' at its end");
    flags.begin_group("This machine, instead of a described chip");
    flags.name("--device", engine_.devices, "LIST",
               "Devices of which a profile is kept (see 'troika profile'): cpu@0,openvino@1");
    flags.file("--profile", profile_, "A profile to plan from instead");
    flags.toggle("--tune", tune_,
                 "Measure what is not known, and confirm the best plans by alternating runs");
    engine_.declare_tune_budget(flags);
    flags.integer("-t,--threads", engine_.threads, kThreadRange,
                  "Cores of all devices together (default: every core)");
    flags.choice("--cache-type-k", engine_.key_type, {"f32", "f16"}, "KV cache (default: f32)");
    flags.toggle("--no-cache", engine_.no_cache, "Neither use nor keep profiles and plans");
    flags.begin_group("Product");
    flags.text("--weight", weight_, "NxK", "Outputs and inputs of the weight");
    flags.integer("--tokens", tokens_, {1, planner::kMaxTokens},
                  "Rows that are multiplied at once");
    flags.choice("--type", type_, {"w4a16", "w4a8", "w8a16", "w8a8", "w16a16"},
                 "Bits of weights and activations");
    model_.declare(flags);
    flags.begin_group("Planning");
    flags.text("--strategy", strategy_, "NAME",
               "single:DEVICE, layer, padding, online, pipe, heteroinfer, "
               "heteroinfer-forced, heteromosaic or troika");
    flags.text("--grid", grid_, "1/N", "Shares are multiples of this (default: the strategy's)");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object");
    flags.toggle("--schema", schema_,
                 "Print the JSON schema of the plans that are kept, and plan nothing");
    flags.set_examples(
        "  troika plan --soc snapdragon-8-gen-3 --weight 4096x14336 --tokens 256\n"
        "  troika plan --soc snapdragon-8-gen-3 --weight 4096x4096 --tokens 1 "
        "--strategy heteroinfer --json\n"
        "  troika plan --soc snapdragon-8-gen-3 --shape llama-3-8b -p 256 --activations int8 "
        "--explain\n"
        "  troika plan --device cpu@0,openvino@1 --tune --explain\n");
  }

  Status run(Console& console) override {
    if (schema_) return console.print(engine::stored_plan_schema() + "\n");
    if (!engine_.devices.empty() || !profile_.empty()) return plan_here(console);
    if (tune_) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--tune measures devices: give --device LIST, as in cpu@0,openvino@1");
    }
    if (model_.given()) return plan_model(console);
    ASSIGN_OR_RETURN(const OperatorReport::Inputs inputs, resolve());
    ASSIGN_OR_RETURN(const soc::Soc soc, load_soc(soc_));
    const cost::DescribedCost cost(soc);
    ASSIGN_OR_RETURN(const planner::OperatorPlan plan,
                     planner::plan_operator(cost, inputs.product, inputs.strategy));
    const OperatorReport report{cost, inputs, plan};
    return json_ ? print_json(console, report_json(report), 2) : console.print(report_text(report));
  }

 private:
  Status plan_here(Console& console) const {
    if (!soc_.empty() || !weight_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} is for a described chip, {} for this machine: give one of these",
                        soc_.empty() ? "--weight" : "--soc",
                        profile_.empty() ? "--device" : "--profile");
    }
    if (tune_ && engine_.devices.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--tune needs the devices: give --device LIST");
    }
    MachineRequest request;
    request.engine = engine_;
    request.profile_path = profile_;
    request.tune = tune_;
    request.planning.kv_type = engine_.key_type;
    return model_.run_here(console, std::move(request), strategy_, grid_, json_);
  }

  Status plan_model(Console& console) const {
    if (soc_.empty() || !weight_.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "{}; see 'troika plan --help'",
                        soc_.empty() ? "--soc NAME is needed"
                                     : "--weight is one product, --shape and --model are all of "
                                       "them: give one of these");
    }
    ASSIGN_OR_RETURN(const soc::Soc soc, load_soc(soc_));
    return model_.run(console, cost::DescribedCost(soc), strategy_, grid_, json_);
  }

  Result<OperatorReport::Inputs> resolve() const {
    if (soc_.empty() || weight_.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "{}; see 'troika plan --help'",
                        soc_.empty() ? "--soc NAME is needed"
                                     : "--weight NxK is needed for one product, --shape or "
                                       "--model for a whole model");
    }
    OperatorReport::Inputs inputs;
    RETURN_IF_ERROR(parse_weight(weight_, inputs.product));
    inputs.product.m = tokens_;
    inputs.product.type = type_;
    inputs.product.weight_bits = *soc::weight_bits(type_);
    ASSIGN_OR_RETURN(inputs.strategy, planner::strategy_from(strategy_));
    if (!grid_.empty()) {
      ASSIGN_OR_RETURN(inputs.strategy.grid, planner::grid_from(grid_));
      inputs.strategy.grid_one_row = inputs.strategy.grid;
    }
    return inputs;
  }

  ModelPlanFlags model_;
  EngineFlags engine_;
  std::string profile_;
  bool tune_ = false;
  std::string soc_;
  std::string weight_;
  int64_t tokens_ = 1;
  std::string type_ = "w4a16";
  std::string strategy_ = "troika";
  std::string grid_;
  bool json_ = false;
  bool schema_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_plan() { return std::make_unique<Plan>(); }

}  // namespace troika::cli
