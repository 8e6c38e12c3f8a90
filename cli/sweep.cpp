// troika sweep: forecasts of many models on many described chips, on all cores, in one file.
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/question_flags.h"
#include "cli/sweep_file.h"
#include "cli/sweep_lists.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

class Sweep final : public Verb {
 public:
  void declare(Flags& flags) override {
    lists_.declare(flags);
    question_.declare(flags);
    flags.begin_group("Output");
    flags.output("-o,--output", output_,
                 "Where the rows go; a sweep that was interrupted goes on there");
    flags.choice("--format", format_, {"jsonl", "csv"}, "Of the rows");
    flags.integer("-t,--threads", threads_, {0, 1024}, "0: every core (default: 0)");
    flags.set_examples(
        "  troika sweep --soc snapdragon-8-gen-3,core-ultra-5-125h --shape llama-3-8b,llama-3.2-3b "
        "-p 256,1024 --strategy layer,heteroinfer,troika -o sweep.jsonl\n");
  }

  Status run(Console& console) override {
    if (!lists_.given() || output_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--soc LIST, --shape LIST and -o FILE are needed; see 'troika sweep "
                        "--help'");
    }
    forecast::SweepOptions options;
    ASSIGN_OR_RETURN(options.question, question_.question());
    options.threads = sweep_threads(threads_);
    options.stop = &interrupt_flag();
    RETURN_IF_ERROR(lists_.read());
    ASSIGN_OR_RETURN(SweepFile file, SweepFile::open(output_, format_ == "csv"));
    std::vector<forecast::SweepCase> cases = lists_.cases();
    std::erase_if(cases, [&](const auto& one) { return file.done().count(key_of(one)) > 0; });
    const size_t all = lists_.cases().size();
    const size_t before = all - cases.size();
    size_t done = 0;
    size_t failed = 0;
    {
      Progress progress(console, "forecasts");
      const auto row = [&](const forecast::SweepCase& one,
                           const Result<forecast::Answer>& answer) -> Status {
        RETURN_IF_ERROR(file.add(key_of(one), values_of(answer)));
        if (!answer) ++failed;
        progress.update(before + ++done, all);
        return {};
      };
      RETURN_IF_ERROR(forecast::sweep(lists_.chips(), lists_.models(), cases, options, row));
    }
    console.status(fmt::format("{} of {} forecasts are in {}{}{}\n", before + done, all,
                               in_quotes(output_),
                               failed > 0 ? fmt::format(", {} of these cannot be", failed) : "",
                               done < cases.size() ? "; the same command goes on" : ""));
    if (done == cases.size()) return {};
    return make_error(ErrorCode::kCancelled, "interrupted");
  }

 private:
  SweepKey key_of(const forecast::SweepCase& one) const {
    return {lists_.chips()[one.chip].soc.name,
            lists_.chips()[one.chip].name,
            lists_.models()[one.model].name,
            one.prompt,
            one.generate,
            one.strategy,
            question_.settings()};
  }

  static Json values_of(const Result<forecast::Answer>& answer) {
    const auto value = [&](double forecast::Answer::*field) {
      return answer ? Json((*answer).*field) : Json();
    };
    return {{"simulated", true},
            {"ttft_ms", value(&forecast::Answer::ttft_ms)},
            {"prefill_tok_s", value(&forecast::Answer::prefill_tok_s)},
            {"tpot_ms", value(&forecast::Answer::tpot_ms)},
            {"decode_tok_s", value(&forecast::Answer::decode_tok_s)},
            {"energy_j", value(&forecast::Answer::energy_j)},
            {"power_w", value(&forecast::Answer::power_w)},
            {"bound_ms", answer ? Json(answer->bound_ms()) : Json()},
            {"evaluations", answer ? Json(answer->evaluations) : Json()},
            {"error", answer ? Json() : Json(answer.error().message)}};
  }

  SweepLists lists_;
  QuestionFlags question_;
  std::string output_;
  std::string format_ = "jsonl";
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_sweep() { return std::make_unique<Sweep>(); }

}  // namespace troika::cli
