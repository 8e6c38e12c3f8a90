// troika completion: scripts made from the table of verbs and their flags, so that they never lag.
#include "cli/completion.h"

#include <array>

#include "cli/verbs.h"

namespace troika::cli {
namespace {

std::vector<std::string> flag_names(const VerbEntry& entry) {
  const std::unique_ptr<Verb> verb = entry.make();
  Flags flags{std::string(entry.name)};
  verb->declare(flags);
  std::vector<std::string> names = flags.names();
  for (const char* common : {"-v", "--verbose", "-lv", "--verbosity", "--log-file"}) {
    names.emplace_back(common);
  }
  return names;
}

std::string verb_names() {
  std::vector<std::string_view> names;
  for (const VerbEntry& verb : verbs()) names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// A case for each verb that lists its flags: the same words in bash and zsh.
std::string flag_cases() {
  std::string cases;
  for (const VerbEntry& verb : verbs()) {
    cases += fmt::format("    {}) flags=\"{}\" ;;\n", verb.name, fmt::join(flag_names(verb), " "));
  }
  return cases;
}

class Completion final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Shell");
    flags.choice("--shell", shell_, {"bash", "zsh", "fish"}, "The shell to write for");
    flags.set_examples(
        "  source <(troika completion)\n"
        "  troika completion --shell zsh > ~/.zfunc/_troika\n"
        "  troika completion --shell fish > ~/.config/fish/completions/troika.fish\n");
  }

  Status run(Console& console) override {
    if (shell_ == "zsh") return console.print(zsh_completion());
    if (shell_ == "fish") return console.print(fish_completion());
    return console.print(bash_completion());
  }

 private:
  std::string shell_ = "bash";
};

}  // namespace

std::string bash_completion() {
  return fmt::format(
      "# bash completion for troika; load it with: source <(troika completion)\n"
      "_troika() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" flags=\"--help --version\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=() ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o default -F _troika troika\n",
      verb_names(), flag_cases());
}

std::string zsh_completion() {
  return fmt::format(
      "#compdef troika\n"
      "_troika() {{\n"
      "  local flags=\"\"\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd -- {} --help --version\n"
      "    return\n"
      "  fi\n"
      "  case \"${{words[2]}}\" in\n{}  esac\n"
      "  if [[ \"${{words[CURRENT]}}\" == -* ]]; then\n"
      "    compadd -- ${{=flags}}\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "if [ \"$funcstack[1]\" = \"_troika\" ]; then _troika \"$@\"; else compdef _troika troika; "
      "fi\n",
      verb_names(), flag_cases());
}

std::string fish_completion() {
  std::string script = "# fish completion for troika\n";
  for (const VerbEntry& verb : verbs()) {
    script += fmt::format("complete -c troika -n __fish_use_subcommand -f -a {} -d '{}'\n",
                          verb.name, verb.summary);
  }
  for (const VerbEntry& verb : verbs()) {
    for (const std::string& name : flag_names(verb)) {
      const std::string_view kind = name.starts_with("--") ? "-l" : name.size() == 2 ? "-s" : "-o";
      script += fmt::format("complete -c troika -n '__fish_seen_subcommand_from {}' {} {}\n",
                            verb.name, kind, name.substr(name.starts_with("--") ? 2 : 1));
    }
  }
  return script;
}

std::unique_ptr<Verb> make_completion() { return std::make_unique<Completion>(); }

}  // namespace troika::cli
