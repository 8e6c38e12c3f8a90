// troika simulate: what a model would do on a described chip. Nothing of it is measured.
#include "cli/chip.h"
#include "cli/forecast_report.h"
#include "cli/question_flags.h"
#include "cli/text.h"
#include "cli/trace_page.h"
#include "cli/verbs.h"
#include "troika/base/write_file.h"
#include "troika/model/model_shape.h"

namespace troika::cli {
namespace {

class Simulate final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Chip and model");
    flags.name_or_file(
        "--soc", soc_, "NAME",
        "A described chip, by name or as a file with '/' in its path or '.json' at its end");
    flags.text("--stack", stack_, "NAME", "Which of the chip's software (default: default)");
    flags.text("--shape", shape_, "SHAPE",
               "A model by name, or hidden,layers,heads,kv_heads,ffn,vocab; names: " +
                   model::shape_names());
    flags.file("-m,--model", model_, "A GGUF file, of which only the header is read");
    flags.integer("-p,--prompt-tokens", prompt_, {1, planner::kMaxPassRows},
                  "Tokens of the prompt (default: 256)");
    flags.integer("-n,--predict", generate_, {1, planner::kMaxPassRows},
                  "Tokens to generate after it (default: 32)");
    flags.text("--strategy", strategy_, "NAME",
               "single:UNIT, layer, padding, online, pipe, heteroinfer, heteroinfer-forced, "
               "heteromosaic or troika");
    question_.declare(flags);
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object");
    flags.output("--html", html_, "Write the timeline as one HTML page, too");
    flags.output("--trace", trace_, "Write the tasks, too, for 'troika trace' and Perfetto");
    flags.set_examples(
        "  troika simulate --soc snapdragon-8-gen-3 --shape llama-3-8b -p 256 -n 32\n"
        "  troika simulate --soc snapdragon-8-gen-3 --shape llama-3-8b --strategy heteroinfer "
        "--html timeline.html\n"
        "  troika simulate --soc core-ultra-5-125h --shape llama-3.2-3b --load gpu,0.3,8 --json\n");
  }

  Status run(Console& console) override {
    if (soc_.empty() || shape_.empty() == model_.empty()) {
      return make_error(
          ErrorCode::kInvalidArgument, "{}; see 'troika simulate --help'",
          soc_.empty() ? "--soc NAME is needed" : "either --shape SHAPE or -m FILE is needed");
    }
    ASSIGN_OR_RETURN(forecast::Question question, question_.question());
    question.prompt = prompt_;
    question.generate = generate_;
    question.strategy = strategy_;
    question.with_trace = !html_.empty() || !trace_.empty();
    ASSIGN_OR_RETURN(const soc::Soc soc, load_soc(soc_, stack_));
    ASSIGN_OR_RETURN(
        const forecast::ShapedModel model,
        model_.empty() ? forecast::shaped_model(shape_) : forecast::shaped_model_of_file(model_));
    ASSIGN_OR_RETURN(forecast::Answer answer,
                     forecast::forecast(model, cost::DescribedCost(soc), question));
    const ForecastReport report{soc,
                                stack_,
                                model_.empty() ? shape_ : printable(model_),
                                question_.settings(),
                                question,
                                forecast::error_band(soc.name, stack_),
                                answer};
    if (answer.trace) RETURN_IF_ERROR(write_trace(report, *answer.trace));
    return json_ ? print_json(console, report_json(report), 2) : console.print(report_text(report));
  }

 private:
  Status write_trace(const ForecastReport& report, Trace& trace) const {
    trace.title = fmt::format("{} on {}, simulated", report.model, report.soc.name);
    trace.description =
        fmt::format("strategy {}, {} tokens and the first one after them. {}",
                    report.question.strategy, report.question.prompt, report.answer.prefill_plan);
    if (!html_.empty()) {
      RETURN_IF_ERROR(write_file("the page", html_, trace_page(trace, summarize(trace, 10))));
    }
    if (trace_.empty()) return {};
    return write_chrome_json(trace, trace_);
  }

  QuestionFlags question_;
  std::string soc_;
  std::string stack_ = "default";
  std::string shape_;
  std::string model_;
  int64_t prompt_ = 256;
  int64_t generate_ = 32;
  std::string strategy_ = "troika";
  bool json_ = false;
  std::string html_;
  std::string trace_;
};

}  // namespace

std::unique_ptr<Verb> make_simulate() { return std::make_unique<Simulate>(); }

}  // namespace troika::cli
