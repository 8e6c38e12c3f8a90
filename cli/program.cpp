#include "cli/program.h"

#include <unistd.h>

#include <exception>
#include <new>

#include "cli/completion.h"
#include "cli/console.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "cli/version.h"

namespace troika::cli {
namespace {

std::string overview() {
  std::string text =
      "troika runs a large language model on all the processors of one chip.\n\n"
      "Usage: troika VERB [OPTIONS]\n\nVerbs:\n";
  for (const VerbEntry& verb : verbs()) {
    text += fmt::format("  {:<12}{}\n", verb.name, verb.summary);
  }
  return text +
         "\nOptions:\n"
         "  -h, --help         Print this text, or that of a verb: troika VERB --help\n"
         "  --version          Print version, commit and compiler\n"
         "  --completion-bash  Print a bash completion script (zsh, fish: troika completion)\n"
         "\nExamples:\n"
         "  troika run -p \"Why is the sky blue?\"\n"
         "  troika chat -m models/SmolLM2-135M-Instruct.Q4_1.gguf\n"
         "  troika bench -p 512 -n 128 -t 1,2\n"
         "\nExit codes are listed in docs/errors.md.\n";
}

Status run_verb(const VerbEntry& entry, const std::vector<std::string>& arguments,
                const Environment& environment, Console& console) {
  const std::unique_ptr<Verb> verb = entry.make();
  Flags flags{std::string(entry.name)};
  flags.set_description(std::string(entry.summary));
  bool verbose = false;
  int64_t verbosity = 3;
  std::string log_file;
  verb->declare(flags);
  flags.begin_group("Messages");
  flags.toggle("-v,--verbose", verbose, "Tell on stderr what is being done");
  flags.integer("--verbosity,--log-verbosity", verbosity, {0, 5}, "As -v from 4 on",
                "LLAMA_LOG_VERBOSITY");
  flags.output("--log-file", log_file, "Append those messages to a file", "LLAMA_LOG_FILE");
  RETURN_IF_ERROR(flags.parse(arguments, environment));
  if (flags.help_requested()) return console.print(flags.help());

  console.set_verbose(verbose || verbosity >= 4);
  if (!log_file.empty()) RETURN_IF_ERROR(console.open_log(log_file));
  for (const std::string& note : flags.notes()) console.note(note);
  return verb->run(console);
}

Status dispatch(const std::vector<std::string>& arguments, const Environment& environment,
                Console& console) {
  if (arguments.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "no verb given; see 'troika --help'");
  }
  const std::string& first = arguments.front();
  if (first == "-h" || first == "--help" || first == "--usage") return console.print(overview());
  if (first == "--version") return console.print(version_text());
  if (first == "--completion-bash") return console.print(bash_completion());
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (first == "help") {
    if (rest.empty()) return console.print(overview());
    const VerbEntry* verb = find_verb(rest.front());
    if (verb == nullptr) return tl::unexpected<Error>(unknown_verb(rest.front()));
    return run_verb(*verb, {"--help"}, environment, console);
  }
  // --list-devices is llama.cpp's spelling of this verb.
  const VerbEntry* verb = find_verb(first == "--list-devices" ? "devices" : first);
  if (verb == nullptr) return tl::unexpected<Error>(unknown_verb(first));
  return run_verb(*verb, rest, environment, console);
}

int report(Console& console, const Error& error) {
  if (is_closed_pipe(error)) return 0;
  console.status("error: " + printable(error.message) + "\n");
  return exit_code(error.code);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const Environment& environment) {
  Console console;
  try {
    const Status status = dispatch(arguments, environment, console);
    return status ? 0 : report(console, status.error());
  } catch (const std::bad_alloc&) {
    return report(console, {ErrorCode::kOutOfMemory,
                            "out of memory; try a smaller context (-c) or a smaller model"});
  } catch (const std::exception& e) {
    return report(console, {ErrorCode::kInternal, fmt::format("unexpected: {}", e.what())});
  }
}

}  // namespace troika::cli
