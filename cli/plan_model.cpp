#include "cli/plan_model.h"

#include "cli/default_model.h"
#include "cli/pass_report.h"
#include "cli/plan_page.h"
#include "cli/text.h"
#include "troika/base/write_file.h"
#include "troika/model/model_shape.h"
#include "troika/model/synth.h"
#include "troika/model/weight_mix.h"
#include "troika/planner/unit_devices.h"

namespace troika::cli {
namespace {

Result<model::Model> model_of(const std::string& shape, const std::string& type,
                              const std::string& file) {
  if (!file.empty()) {
    model::LoadOptions options;
    options.sizes_only = true;
    return model::Model::load(file, options);
  }
  model::SynthOptions options;
  ASSIGN_OR_RETURN(options.shape, model::parse_shape(shape));
  const auto mix = model::parse_mix(type);
  if (!mix) return make_error(mix.error().code, "--weights: {}", mix.error().message);
  options.mix = *mix;
  return model::outline_model(options);
}

// A meter of this machine shows what all devices draw together, if there is one.
Status check_machine_objective(const std::string& text) {
  ASSIGN_OR_RETURN(const planner::Objective objective, planner::objective_from(text));
  if (!objective.needs_power()) return {};
  return make_error(ErrorCode::kUnsupported,
                    "--objective {} needs what each device draws by itself, which profiles do not "
                    "hold; on this machine the time of each pass can be planned for: latency, ttft "
                    "or tpot; energy on a described chip, with --soc",
                    planner::to_string(objective));
}

}  // namespace

void ModelPlanFlags::declare(Flags& flags) {
  flags.begin_group("Model, instead of a product");
  flags.text(
      "--shape", shape_, "SHAPE",
      "A model by name, or hidden,layers,heads,kv_heads,ffn,vocab; names: " + model::shape_names());
  flags.file("-m,--model", model_, "A GGUF file, of which only the header is read");
  flags.text("--weights", type_, "TYPE", "Of a --shape: " + model::mix_names());
  flags.integer("-p,--prompt-tokens", prompt_, {1, planner::kMaxPassRows},
                "The longest prompt that is planned for (default: 512)");
  flags.integer("-n,--predict", generate_, {0, planner::kMaxPassRows},
                "Tokens to generate after it; 0: plan no decode (default: 128)");
  flags.choice("--activations", activations_, {"f32", "int8"},
               "int8: a device may round activations where it has no other path");
  flags.text("--objective", objective_, "WHAT",
             "latency, ttft, tpot (all: the time of each pass), energy, edp (energy times time), "
             "power-cap=W or deadline=MS of each pass");
  flags.choice("--sync", sync_, {"queue", "predict", "blocking"},
               "How devices wait for each other");
  flags.number("--weight-bits", weight_bits_, {0, 64},
               "Stored for each weight; 0: as in the model (default: 0)");
  flags.number("--activation-bits", activation_bits_, {0, 64},
               "Of each element of an activation; 0: as in the model (default: 0)");
  flags.integer("--budget", budget_, {0, 10000000},
                "Schedules to try for each number of rows; 0: the planner's default");
  flags.integer("-s,--seed", seed_, {0, INT64_MAX}, "Seed of the search (default: 1)");
  flags.toggle("--explain", explain_, "Say who computes what, and what was tried besides");
  flags.toggle("--ablation", ablation_, "Print what each idea of the planner adds, for -p tokens");
  flags.output("-o,--output", output_, "Write the plan there, for --plan");
  flags.output("--html", html_, "Write the plan as one HTML page, every cut drawn");
}

Status ModelPlanFlags::run_here(Console& console, MachineRequest machine,
                                const std::string& strategy, const std::string& grid,
                                bool json) const {
  if (!shape_.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--shape is for a described chip; devices need a model: give -m FILE");
  }
  if (weight_bits_ > 0 || activation_bits_ > 0 || ablation_) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--weight-bits, --activation-bits and --ablation are for a described chip");
  }
  RETURN_IF_ERROR(check_machine_objective(objective_));
  machine.model.path = model_;
  machine.strategy = strategy;
  machine.grid = grid;
  machine.planning.max_rows = prompt_;
  machine.planning.decode_depth = prompt_ / 2;
  machine.planning.activations = machine.engine.activations = activations_;
  machine.planning.evaluations = budget_;
  machine.planning.seed = static_cast<uint64_t>(seed_);
  machine.engine.value_type = machine.engine.key_type;
  machine.engine.sync = sync_;
  machine.engine.ubatch = machine.engine.batch = prompt_;
  machine.planning.sync = sync_ == "queue"     ? runtime::Sync::kQueue
                          : sync_ == "predict" ? runtime::Sync::kPredict
                                               : runtime::Sync::kBlocking;
  ASSIGN_OR_RETURN(const MachinePlan plan, plan_machine(machine, console));
  if (!output_.empty()) {
    RETURN_IF_ERROR(write_file("the plan", output_, plan::to_json(plan.stored.plan)));
  }
  std::string devices;
  for (const profile::DeviceProfile& device : plan.cost->profile().devices) {
    devices +=
        fmt::format("{}{} ({})", devices.empty() ? "" : ", ", device.name, device.description);
  }
  const PassReport report{"this machine", devices,
                          false,          printable(plan.cost->profile().model.name),
                          strategy,       machine.planning.decode_depth,
                          *plan.cost,     plan.made};
  if (!html_.empty()) RETURN_IF_ERROR(write_file("the page", html_, plan_page(report)));
  Status printed = json ? print_json(console, report_json(report), 2)
                        : console.print(report_text(report, explain_));
  if (printed && !machine.engine.no_cache) {
    console.hint("run, chat and bench use it on these devices from now on");
  }
  return printed;
}

Status ModelPlanFlags::run(Console& console, const cost::DescribedCost& cost,
                           const std::string& strategy_name, const std::string& grid,
                           bool json) const {
  ASSIGN_OR_RETURN(planner::Strategy strategy, planner::strategy_from(strategy_name));
  if (!grid.empty()) {
    ASSIGN_OR_RETURN(strategy.grid, planner::grid_from(grid));
    strategy.grid_one_row = strategy.grid;
  }
  ASSIGN_OR_RETURN(const model::Model model, model_of(shape_, type_, model_));
  ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(model));
  planner::ModelRequest request;
  request.max_rows = prompt_;
  if (generate_ == 0) request.rows = {prompt_};
  request.decode_depth = prompt_;
  request.pass.integer_activations = activations_ == "int8";
  ASSIGN_OR_RETURN(request.pass.objective, planner::objective_from(objective_));
  request.pass.weight_bits = weight_bits_;
  request.pass.activation_bits = activation_bits_;
  request.pass.sync = sync_ == "queue"     ? sim::Sync::kQueue
                      : sync_ == "predict" ? sim::Sync::kPredict
                                           : sim::Sync::kBlocking;
  if (budget_ > 0) request.pass.budget.evaluations = budget_;
  request.pass.budget.seed = static_cast<uint64_t>(seed_);
  if (ablation_) {
    request.pass.rows = prompt_;
    ASSIGN_OR_RETURN(const auto rows, planner::ablation(graph, cost, request.pass));
    return json ? print_json(console, ablation_json(rows, prompt_), 2)
                : console.print(ablation_text(rows, prompt_));
  }
  ASSIGN_OR_RETURN(const planner::ModelPlan plan,
                   planner::plan_model(graph, cost, strategy, request));
  if (!output_.empty()) {
    RETURN_IF_ERROR(write_file("the plan", output_,
                               plan::to_json(planner::for_devices(plan.plan, cost.soc()))));
  }
  const std::string name = model_.empty() ? shape_ + " " + type_ : model_;
  const PassReport report{cost.soc().name, cost.soc().stack, true, printable(name),
                          strategy.name,   prompt_,          cost, plan};
  if (!html_.empty()) RETURN_IF_ERROR(write_file("the page", html_, plan_page(report)));
  return json ? print_json(console, report_json(report), 2)
              : console.print(report_text(report, explain_));
}

}  // namespace troika::cli
