// troika run: answers one prompt.
#include "cli/answer_report.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/memory_report.h"
#include "cli/prompt.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

class Run final : public Verb {
 public:
  void declare(Flags& flags) override {
    prompt_.declare(flags);
    flags.text("--system-prompt", system_, "TEXT", "The system message");
    flags.file("--chat-template-file", template_file_,
               "Use this chat template instead of the model's", "LLAMA_ARG_CHAT_TEMPLATE_FILE");
    flags.toggle("--raw", raw_,
                 "No chat template; names of special tokens in the text are meant as such");
    flags.toggle("--no-conversation", raw_, "As --raw");
    flags.ignored("--conversation", Flags::Arity::kNone, "'troika chat' holds a conversation");
    flags.ignored("--jinja", Flags::Arity::kNone, "the chat template is always used");
    flags.ignored("--single-turn,--simple-io,--no-display-prompt,--no-warmup", Flags::Arity::kNone,
                  "it is always so");
    model_.declare(flags);
    engine_.declare(flags);
    sampling_.declare(flags);
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object instead of the text");
    flags.integer("--logprobs", logprobs_, {0, 1000},
                  "With --json: the K likeliest tokens of every position");
    flags.toggle("--stats,--perf", stats_, "Print times on stderr (default on a terminal)");
    flags.set_examples(
        "  troika run -p \"Why is the sky blue?\"\n"
        "  troika run --raw --temp 0 -n 16 -p \"The capital of France is\"\n"
        "  git diff | troika run -sys \"Review this change\" -f -\n"
        "  troika run -p Hello --json --logprobs 5 -s 1\n");
    flags_ = &flags;
  }

  Status run(Console& console) override {
    ASSIGN_OR_RETURN(engine::GenerateOptions options, sampling_.resolve());
    options.logprobs = static_cast<int>(logprobs_);
    ASSIGN_OR_RETURN(const std::string text, prompt_.read(*flags_));
    ASSIGN_OR_RETURN(LoadedEngine loaded, load_engine(model_, engine_, console));
    warn_of_context(*loaded.engine, console);
    ASSIGN_OR_RETURN(const std::vector<model::TokenId> ids,
                     encode(loaded.engine->model(), text, console));
    if (ids.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "the prompt is empty; give at least one character with -p");
    }
    ASSIGN_OR_RETURN(auto session, loaded.engine->new_session());
    Status written;
    const auto on_text = [&](std::string_view piece) {
      if (!json_) written = console.print(piece);
      return written.has_value();
    };
    ASSIGN_OR_RETURN(const engine::Answer answer,
                     session->generate(ids, options, on_text, &interrupt_flag()));
    RETURN_IF_ERROR(written);
    RETURN_IF_ERROR(report(console, loaded, ids, options, answer));
    RETURN_IF_ERROR(save_trace(*loaded.engine, engine_));
    if (answer.finish_reason == engine::FinishReason::kCancelled) {
      return make_error(ErrorCode::kCancelled, "the answer was interrupted after {} tokens",
                        answer.tokens.size());
    }
    return {};
  }

 private:
  Result<std::vector<model::TokenId>> encode(const model::Model& model, std::string text,
                                             Console& console) const {
    const bool no_template = model.chat_template_source().empty() && template_file_.empty();
    if (raw_ || no_template) {
      if (!raw_) console.warn("the model has no chat template; the text is continued as it is");
      if (!system_.empty()) {
        return make_error(ErrorCode::kInvalidArgument,
                          "--system-prompt needs a chat template; put the text into the prompt");
      }
      return encode_raw(model.tokenizer(), text, raw_);
    }
    // A file's last newline belongs to the file, not to the question.
    if (flags_->given("--file") && text.ends_with('\n')) text.pop_back();
    ASSIGN_OR_RETURN(const ChatEncoder encoder, ChatEncoder::create(model, template_file_));
    std::vector<model::ChatMessage> messages;
    if (!system_.empty()) messages.push_back({"system", system_});
    messages.push_back({"user", text});
    return encoder.encode(messages);
  }

  Status report(Console& console, const LoadedEngine& loaded,
                const std::vector<model::TokenId>& ids, const engine::GenerateOptions& options,
                const engine::Answer& answer) const {
    if (json_) {
      Json json = answer_json(loaded, ids, options, answer);
      const auto memory = print_memory(loaded, engine_, console);
      if (engine_.memory) json["memory"] = memory ? memory_json(*memory) : Json();
      return print_json(console, json);
    }
    if (!answer.text.ends_with('\n')) RETURN_IF_ERROR(console.print("\n"));
    if (stats_ || console.stderr_is_terminal()) console.status(answer_summary(answer));
    print_memory(loaded, engine_, console);
    return {};
  }

  PromptFlags prompt_;
  ModelFlags model_;
  EngineFlags engine_;
  SamplingFlags sampling_;
  std::string system_;
  std::string template_file_;
  bool raw_ = false;
  bool json_ = false;
  bool stats_ = false;
  int64_t logprobs_ = 0;
  const Flags* flags_ = nullptr;
};

}  // namespace

std::unique_ptr<Verb> make_run() { return std::make_unique<Run>(); }

}  // namespace troika::cli
