// troika perplexity: how well a model predicts a text.
#include <cmath>

#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/memory_report.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

// Rows scored in one pass: enough for the speed of a prompt, few enough that the logits of a large
// vocabulary (128 Ki tokens) stay below 70 MB.
constexpr int64_t kLogitRows = 128;

class Perplexity final : public Verb {
 public:
  void declare(Flags& flags) override {
    prompt_.declare(flags);
    flags.toggle("--no-special", no_special_, "Names of special tokens are plain text");
    model_.declare(flags);
    engine_.declare(flags);
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print nll_mean, perplexity, tokens and tok_s as JSON");
    flags.set_examples(
        "  troika perplexity -f README.md\n"
        "  troika perplexity -f README.md -c 512 -ctk f16 --json\n\n"
        "The text is cut into windows of the context (-c); every token after the first of\n"
        "a window is scored given what comes before it in that window.\n");
    flags_ = &flags;
  }

  Status run(Console& console) override {
    ASSIGN_OR_RETURN(const std::string text, prompt_.read(*flags_));
    ASSIGN_OR_RETURN(LoadedEngine loaded, load_engine(model_, engine_, console, kLogitRows));
    warn_of_context(*loaded.engine, console);
    engine::Engine& engine = *loaded.engine;
    const std::vector<model::TokenId> ids =
        encode_raw(engine.model().tokenizer(), text, !no_special_);
    if (ids.size() < 2) {
      return make_error(ErrorCode::kInvalidArgument,
                        "the text has {} tokens; at least 2 are needed to score one", ids.size());
    }
    Progress progress(console, "scoring");
    auto scored = engine.score(ids, [&progress](int64_t done, int64_t all) {
      progress.update(static_cast<uint64_t>(done), static_cast<uint64_t>(all));
      return !interrupted();
    });
    if (!scored && interrupted()) {
      return make_error(ErrorCode::kCancelled, "interrupted while scoring");
    }
    if (!scored) return tl::unexpected<Error>(scored.error());
    RETURN_IF_ERROR(save_trace(engine, engine_));
    RETURN_IF_ERROR(report(console, *scored, engine));
    print_memory(loaded, engine_, console);
    return {};
  }

 private:
  Status report(Console& console, const engine::NllResult& scored,
                const engine::Engine& engine) const {
    const double mean = scored.nll_sum / static_cast<double>(scored.tokens);
    const double seconds = to_seconds(scored.elapsed);
    const double speed = seconds > 0 ? static_cast<double>(scored.tokens) / seconds : 0;
    if (json_) {
      return print_json(console, {{"nll_mean", mean},
                                  {"perplexity", std::exp(mean)},
                                  {"tokens", scored.tokens},
                                  {"tok_s", speed},
                                  {"model", engine.model().path()},
                                  {"context", engine.options().context},
                                  {"threads", engine.options().threads}});
    }
    return console.print(
        fmt::format("perplexity {:.4f}, mean negative log-likelihood {:.6f} over {} tokens, "
                    "{:.1f} tok/s\n",
                    std::exp(mean), mean, scored.tokens, speed));
  }

  PromptFlags prompt_;
  ModelFlags model_;
  EngineFlags engine_;
  bool no_special_ = false;
  bool json_ = false;
  const Flags* flags_ = nullptr;
};

}  // namespace

std::unique_ptr<Verb> make_perplexity() { return std::make_unique<Perplexity>(); }

}  // namespace troika::cli
