// The flags of one verb: declared with a range each, read from the command line, then from the
// environment. Knows llama.cpp's short names of several letters (-ctk, -ngl).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/numbers.h"
#include "troika/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace troika::cli {

// The value of an environment variable; nullptr if it is not set.
using Environment = std::function<const char*(const char*)>;

// Every target is borrowed and must outlive parse(). `names` is as CLI11 takes them:
// "-n,--predict". An `env` of "LLAMA_ARG_X" is also read as TROIKA_X, which wins; the command line
// beats both.
class Flags {
 public:
  explicit Flags(const std::string& verb);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  void integer(const std::string& names, int64_t& target, IntegerRange range,
               const std::string& help, const std::string& env = "");
  void number(const std::string& names, double& target, NumberRange range, const std::string& help,
              const std::string& env = "");
  void text(const std::string& names, std::string& target, const std::string& placeholder,
            const std::string& help, const std::string& env = "");
  // The same for a name, or a list of names; an empty one is refused, which is what a variable that
  // is not set leaves of "$LIST".
  void name(const std::string& names, std::string& target, const std::string& placeholder,
            const std::string& help, const std::string& env = "");
  // A path; an empty one is refused, which is what a variable that is not set leaves of "$FILE".
  void file(const std::string& names, std::string& target, const std::string& help,
            const std::string& env = "");
  // The same for a file that is written. parse() refuses one that is also read, or written twice,
  // and standard input ("-") for two files that are read.
  void output(const std::string& names, std::string& target, const std::string& help,
              const std::string& env = "");
  // A name, or a file that is read: with '/' in its path, or '.json' at its end.
  void name_or_file(const std::string& names, std::string& target, const std::string& placeholder,
                    const std::string& help);
  // May be given several times.
  void texts(const std::string& names, std::vector<std::string>& target,
             const std::string& placeholder, const std::string& help);
  void choice(const std::string& names, std::string& target, std::vector<std::string> allowed,
              const std::string& help, const std::string& env = "");
  void toggle(const std::string& names, bool& target, const std::string& help,
              const std::string& env = "");

  // The one argument that is no flag ("troika trace FILE"), a file to be read; `name` stands for it
  // in the help.
  void positional(const std::string& name, std::string& target, const std::string& help);

  enum class Arity { kNone, kOptional, kOne };
  // Accepted for llama.cpp's users, without effect here; `reason` is told under -v.
  void ignored(const std::string& names, Arity arity, const std::string& reason);

  void begin_group(const std::string& title) { group_ = title; }
  void set_description(const std::string& description);
  void set_examples(const std::string& examples);

  // kInvalidArgument naming the flag or the variable, the value and what is allowed.
  Status parse(const std::vector<std::string>& arguments, const Environment& environment);

  bool help_requested() const { return help_requested_; }
  std::string help() const;
  // "given but ignored: reason", one line each.
  std::vector<std::string> notes() const;
  // All names with their dashes, as a user may type them; for shell completion.
  std::vector<std::string> names() const;
  // Whether the flag with this long name came from the command line or the environment.
  bool given(std::string_view long_name) const;

 private:
  struct Flag;
  Flag& add(const std::string& names, Arity arity, const std::string& placeholder,
            const std::string& help, const std::string& env);
  const Flag* find(std::string_view name) const;
  Result<std::vector<std::string>> expand(const std::vector<std::string>& arguments) const;
  Status parse_command_line(const std::vector<std::string>& arguments);
  Status read_environment(Flag& flag, const Environment& environment);
  Status check_files() const;
  Error unknown(const std::string& argument) const;

  std::string verb_;
  std::string group_ = "Options";
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Flag>> flags_;
  bool help_requested_ = false;
};

}  // namespace troika::cli
