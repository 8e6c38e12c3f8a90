#include "cli/sweep_lists.h"

#include <algorithm>

#include "cli/bench_matrix.h"
#include "cli/chip.h"
#include "troika/base/cores.h"
#include "troika/model/model_shape.h"

namespace troika::cli {
namespace {

constexpr size_t kMostCases = 10'000'000;
constexpr IntegerRange kLengths{1, planner::kMaxPassRows};

// Of a chip under a stack: "snapdragon-8-gen-3" or "ryzen-ai-7-350:llama.cpp".
struct ChipName {
  std::string soc;
  std::string stack = "default";
};

ChipName chip_name(const std::string& text) {
  const size_t colon = text.rfind(':');
  ChipName name;
  name.soc = text.substr(0, colon);
  if (colon != std::string::npos) name.stack = text.substr(colon + 1);
  return name;
}

}  // namespace

void SweepLists::declare(Flags& flags) {
  flags.begin_group("Cases: all combinations of these lists");
  flags.text("--soc", socs_, "LIST", "Described chips: NAME, FILE.json, or either with :STACK");
  flags.text("--shape", shapes_, "LIST", "Models: " + model::shape_names());
  flags.text("-p,--prompt-tokens", prompts_, "LIST", "Tokens of the prompt (default: 256)");
  flags.text("-n,--predict", generates_, "LIST", "Tokens to generate after it (default: 32)");
  flags.text("--strategy", strategies_, "LIST", "As for 'troika simulate' (default: troika)");
}

Status SweepLists::read() {
  for (const std::string& text : split_list(socs_)) {
    const ChipName name = chip_name(text);
    ASSIGN_OR_RETURN(soc::Soc soc, load_soc(name.soc, name.stack));
    chips_.push_back({name.stack, std::move(soc)});
  }
  for (const std::string& shape : split_list(shapes_)) {
    ASSIGN_OR_RETURN(forecast::ShapedModel model, forecast::shaped_model(shape));
    models_.push_back({shape, std::move(model)});
  }
  return read_cases();
}

Status SweepLists::read_cases() {
  ASSIGN_OR_RETURN(const std::vector<int64_t> prompts, parse_list("-p", prompts_, kLengths));
  ASSIGN_OR_RETURN(const std::vector<int64_t> generates, parse_list("-n", generates_, kLengths));
  const std::vector<std::string> strategies = split_list(strategies_);
  for (const std::string& strategy : strategies) {
    RETURN_IF_ERROR(planner::strategy_from(strategy));
  }
  const size_t count =
      chips_.size() * models_.size() * prompts.size() * generates.size() * strategies.size();
  if (count > kMostCases) {
    return make_error(ErrorCode::kInvalidArgument, "{} cases, more than {}", count, kMostCases);
  }
  for (size_t chip = 0; chip < chips_.size(); ++chip) {
    for (size_t model = 0; model < models_.size(); ++model) {
      for (const int64_t prompt : prompts) {
        for (const int64_t generate : generates) {
          for (const std::string& strategy : strategies) {
            cases_.push_back({chip, model, prompt, generate, strategy});
          }
        }
      }
    }
  }
  return {};
}

size_t sweep_threads(int64_t asked) {
  return asked > 0 ? static_cast<size_t>(asked) : std::max<size_t>(1, allowed_cores().size());
}

}  // namespace troika::cli
