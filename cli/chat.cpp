// troika chat: a conversation.
#include <unistd.h>

#include "cli/answer_report.h"
#include "cli/conversation.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/load.h"
#include "cli/memory_report.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

constexpr std::string_view kCommands =
    "/bye, /exit  end the chat (also Ctrl-D)\n"
    "/reset       forget the conversation\n"
    "/stats       print times after each answer, or stop it\n"
    "/help        print this text\n"
    "A line that ends with \\ goes on in the next one. Ctrl-C ends an answer.\n";

class Chat final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Prompt");
    flags.text("-p,--prompt", prompt_, "TEXT", "The first message");
    flags.text("--system-prompt", system_, "TEXT", "The system message");
    flags.file("--chat-template-file", template_file_,
               "Use this chat template instead of the model's", "LLAMA_ARG_CHAT_TEMPLATE_FILE");
    flags.ignored("-i,--conversation", Flags::Arity::kNone, "'troika chat' always is one");
    flags.ignored("--jinja", Flags::Arity::kNone, "the chat template is always used");
    flags.ignored("--simple-io,--no-warmup", Flags::Arity::kNone, "it is always so");
    model_.declare(flags);
    engine_.declare(flags);
    sampling_.declare(flags);
    flags.begin_group("Output");
    flags.toggle("--stats,--perf", stats_, "Print times after each answer");
    flags.set_examples(
        "  troika chat\n"
        "  troika chat -sys \"Answer in one sentence\" --temp 0\n"
        "  printf 'Hello\\nWho are you?\\n' | troika chat\n\n"
        "In the chat:\n" +
        std::string(kCommands));
    flags_ = &flags;
  }

  Status run(Console& console) override {
    ASSIGN_OR_RETURN(const engine::GenerateOptions options, sampling_.resolve());
    ASSIGN_OR_RETURN(LoadedEngine loaded, load_engine(model_, engine_, console));
    warn_of_context(*loaded.engine, console);
    ASSIGN_OR_RETURN(Conversation conversation,
                     Conversation::create(*loaded.engine, template_file_, system_, options));
    loaded_ = loaded.engine.get();
    interactive_ = isatty(STDIN_FILENO) == 1;
    if (interactive_) console.status("/help lists the commands, /bye ends the chat\n");
    RETURN_IF_ERROR(talk(console, conversation));
    print_memory(loaded, engine_, console);
    return save_trace(*loaded.engine, engine_);
  }

 private:
  Status talk(Console& console, Conversation& conversation) {
    if (flags_->given("--prompt")) RETURN_IF_ERROR(answer(console, conversation, prompt_));
    LineReader reader(STDIN_FILENO);
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<std::string> message, read_message(console, reader));
      if (!message) break;
      if (message->starts_with('/')) {
        if (*message == "/bye" || *message == "/exit" || *message == "/quit") break;
        command(console, conversation, *message);
      } else if (!message->empty()) {
        RETURN_IF_ERROR(answer(console, conversation, *message));
      }
    }
    return {};
  }

  // The next message, its continued lines joined; nullopt at the end of the input.
  Result<std::optional<std::string>> read_message(Console& console, LineReader& reader) {
    std::string message;
    bool interrupted_before = false;
    std::string_view mark = "> ";
    for (;;) {
      if (interactive_) console.status(mark);
      ASSIGN_OR_RETURN(const LineReader::Line line, reader.next());
      if (line.kind == LineReader::Kind::kInterrupted) {
        if (!interactive_) return make_error(ErrorCode::kCancelled, "the chat was interrupted");
        clear_interrupt();
        console.status("\n");
        if (interrupted_before) return std::optional<std::string>();
        interrupted_before = true;
        message.clear();
        mark = "(Ctrl-C again or /bye ends the chat) > ";
        continue;
      }
      if (line.kind == LineReader::Kind::kEnd) {
        if (interactive_) console.status("\n");
        return message.empty() ? std::optional<std::string>() : std::optional(message);
      }
      message += line.text;
      if (!message.ends_with('\\')) return std::optional(message);
      message.back() = '\n';
      mark = ". ";
    }
  }

  void command(Console& console, Conversation& conversation, const std::string& line) {
    if (line == "/reset" || line == "/clear") {
      conversation.reset();
      console.status("the conversation is forgotten\n");
    } else if (line == "/stats" || line == "/verbose") {
      stats_ = !stats_;
      console.status(stats_ ? "times are printed\n" : "times are no longer printed\n");
    } else if (line == "/help" || line == "/?") {
      console.status(kCommands);
    } else {
      console.status(
          fmt::format("{} is no command; /help lists them, and a space before it makes "
                      "it a message\n",
                      in_quotes(line)));
    }
  }

  // An error of one turn is told and the chat goes on; only one of the output ends it.
  Status answer(Console& console, Conversation& conversation, const std::string& message) {
    Status written;
    const auto turn = conversation.say(
        message,
        [&](std::string_view piece) {
          written = console.print(piece);
          return written.has_value();
        },
        &interrupt_flag());
    RETURN_IF_ERROR(written);
    if (turn) {
      RETURN_IF_ERROR(console.print("\n"));
      if (turn->finish_reason == engine::FinishReason::kContextFull) {
        console.warn("the answer filled the context; /reset starts anew, -c N gives more room");
      }
      if (stats_) console.status(answer_summary(*turn));
      // The user reads meanwhile; what was interrupted is made by the next answer.
      Status balanced = loaded_->balance();
      if (!balanced && balanced.error().code == ErrorCode::kDeviceFailed) return balanced;
    } else if (turn.error().code == ErrorCode::kDeviceFailed) {
      return tl::unexpected<Error>(turn.error());  // the last device: no turn can be answered
    } else {
      console.status("error: " + printable(turn.error().message) + "\n");
    }
    if (!interrupted()) return {};
    if (!interactive_) return make_error(ErrorCode::kCancelled, "the chat was interrupted");
    clear_interrupt();
    return {};
  }

  ModelFlags model_;
  EngineFlags engine_;
  SamplingFlags sampling_;
  std::string prompt_;
  std::string system_;
  std::string template_file_;
  bool stats_ = false;
  bool interactive_ = false;
  const Flags* flags_ = nullptr;
  engine::Engine* loaded_ = nullptr;  // while the chat runs
};

}  // namespace

std::unique_ptr<Verb> make_chat() { return std::make_unique<Chat>(); }

}  // namespace troika::cli
