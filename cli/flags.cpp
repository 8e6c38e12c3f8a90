#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/short_names.h"
#include "cli/text.h"
#include "troika/base/write_file.h"

namespace troika::cli {

struct Flags::Flag {
  std::vector<std::string> names;  // with dashes, the short ones of several letters included
  Arity arity = Arity::kNone;
  std::string env;
  std::string ignored_because;
  CLI::Option* option = nullptr;
  std::function<Status(std::string_view what, const std::string& value)> set;
  std::function<void()> clear = [] {};
  bool repeats = false;
  bool positional = false;  // its name is not typed
  enum class File { kNone, kRead, kWritten };
  File file = File::kNone;
  std::string path;  // of a file
  bool given = false;

  // The name for messages: the first long one.
  const std::string& name() const {
    const auto is_long = [](const std::string& n) { return n.starts_with("--"); };
    const auto found = std::find_if(names.begin(), names.end(), is_long);
    return found == names.end() ? names.front() : *found;
  }
};

Flags::Flags(const std::string& verb)
    : verb_(verb), app_(std::make_unique<CLI::App>("", "troika " + verb)) {
  app_->set_help_flag("-h,--help", "Print this text");
  app_->allow_extras();
  app_->get_formatter()->column_width(34);
}

Flags::~Flags() = default;

Flags::Flag& Flags::add(const std::string& names, Arity arity, const std::string& placeholder,
                        const std::string& help, const std::string& env) {
  auto flag = std::make_unique<Flag>();
  flag->names = CLI::detail::split_names(names);
  flag->arity = arity;
  flag->env = env;
  std::string text = help;
  const std::vector<std::string> declared = flag->names;
  for (const std::string& name : declared) {
    for (const std::string& extra : short_names(name)) {
      flag->names.push_back(extra);
      text += fmt::format(" (also {})", extra);
    }
  }
  if (!env.empty()) text += fmt::format(" [env {}]", env);
  if (arity == Arity::kNone) {
    flag->option = app_->add_flag(names);
  } else {
    flag->option = app_->add_option(names, [](const CLI::results_t&) { return true; });
  }
  flag->option->description(text);
  if (arity == Arity::kOptional) flag->option->expected(0, 1);
  flag->option->group(group_)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (arity != Arity::kNone) flag->option->type_name(placeholder);
  flags_.push_back(std::move(flag));
  return *flags_.back();
}

void Flags::integer(const std::string& names, int64_t& target, IntegerRange range,
                    const std::string& help, const std::string& env) {
  Flag& flag = add(names, Arity::kOne, "N", help, env);
  flag.set = [&target, range](std::string_view what, const std::string& value) -> Status {
    ASSIGN_OR_RETURN(target, parse_integer(what, value, range));
    return {};
  };
}

void Flags::number(const std::string& names, double& target, NumberRange range,
                   const std::string& help, const std::string& env) {
  Flag& flag = add(names, Arity::kOne, "X", help, env);
  flag.option->default_str(fmt::format("{}", target));
  flag.set = [&target, range](std::string_view what, const std::string& value) -> Status {
    ASSIGN_OR_RETURN(target, parse_number(what, value, range));
    return {};
  };
}

void Flags::text(const std::string& names, std::string& target, const std::string& placeholder,
                 const std::string& help, const std::string& env) {
  Flag& flag = add(names, Arity::kOne, placeholder, help, env);
  flag.set = [&target](std::string_view, const std::string& value) -> Status {
    target = value;
    return {};
  };
}

void Flags::name(const std::string& names, std::string& target, const std::string& placeholder,
                 const std::string& help, const std::string& env) {
  Flag& flag = add(names, Arity::kOne, placeholder, help, env);
  flag.set = [&target, placeholder](std::string_view what, const std::string& value) -> Status {
    if (value.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "{}: '' is no {}; give one, or leave it out",
                        what, placeholder);
    }
    target = value;
    return {};
  };
}

void Flags::file(const std::string& names, std::string& target, const std::string& help,
                 const std::string& env) {
  Flag& flag = add(names, Arity::kOne, "FILE", help, env);
  flag.file = Flag::File::kRead;
  flag.set = [&target, &flag](std::string_view what, const std::string& value) -> Status {
    if (value.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: '' names no file; give a path, or leave it out", what);
    }
    target = value;
    flag.path = value;
    return {};
  };
}

void Flags::output(const std::string& names, std::string& target, const std::string& help,
                   const std::string& env) {
  file(names, target, help, env);
  flags_.back()->file = Flag::File::kWritten;
}

void Flags::name_or_file(const std::string& names, std::string& target,
                         const std::string& placeholder, const std::string& help) {
  Flag& flag = add(names, Arity::kOne, placeholder, help, "");
  flag.file = Flag::File::kRead;
  flag.set = [&target, &flag](std::string_view, const std::string& value) -> Status {
    target = value;
    flag.path = is_file_name(value) ? value : "";
    return {};
  };
}

void Flags::texts(const std::string& names, std::vector<std::string>& target,
                  const std::string& placeholder, const std::string& help) {
  Flag& flag = add(names, Arity::kOne, placeholder, help, "");
  flag.repeats = true;
  flag.clear = [&target] { target.clear(); };
  flag.set = [&target](std::string_view, const std::string& value) -> Status {
    target.push_back(value);
    return {};
  };
}

void Flags::choice(const std::string& names, std::string& target, std::vector<std::string> allowed,
                   const std::string& help, const std::string& env) {
  Flag& flag = add(names, Arity::kOne, "NAME", help, env);
  flag.option->default_str(target);
  flag.set = [&target, allowed = std::move(allowed)](std::string_view what,
                                                     const std::string& value) -> Status {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      return make_error(ErrorCode::kInvalidArgument, "{}: {} is not known; allowed: {}", what,
                        in_quotes(value), fmt::join(allowed, ", "));
    }
    target = value;
    return {};
  };
}

void Flags::toggle(const std::string& names, bool& target, const std::string& help,
                   const std::string& env) {
  Flag& flag = add(names, Arity::kNone, "", help, env);
  flag.set = [&target](std::string_view what, const std::string& value) -> Status {
    ASSIGN_OR_RETURN(target, parse_boolean(what, value));
    return {};
  };
}

void Flags::positional(const std::string& name, std::string& target, const std::string& help) {
  Flag& flag = add(name, Arity::kOne, "", help, "");
  flag.positional = true;
  flag.file = Flag::File::kRead;
  flag.set = [&target, &flag](std::string_view, const std::string& value) -> Status {
    target = value;
    flag.path = value;
    return {};
  };
}

void Flags::ignored(const std::string& names, Arity arity, const std::string& reason) {
  Flag& flag = add(names, arity, "VALUE", reason, "");
  flag.ignored_because = reason;
  flag.set = [](std::string_view, const std::string&) -> Status { return {}; };
}

void Flags::set_description(const std::string& description) {
  app_->description(description + "\n");
}

void Flags::set_examples(const std::string& examples) { app_->footer("\nExamples:\n" + examples); }

std::string Flags::help() const {
  std::string text = app_->help();
  for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::vector<std::string> Flags::notes() const {
  std::vector<std::string> lines;
  for (const auto& flag : flags_) {
    if (flag->given && !flag->ignored_because.empty()) {
      lines.push_back(fmt::format("{} has no effect: {}", flag->name(), flag->ignored_because));
    }
  }
  return lines;
}

std::vector<std::string> Flags::names() const {
  std::vector<std::string> all = {"-h", "--help"};
  for (const auto& flag : flags_) {
    if (flag->positional) continue;
    all.insert(all.end(), flag->names.begin(), flag->names.end());
  }
  return all;
}

const Flags::Flag* Flags::find(std::string_view name) const {
  for (const auto& flag : flags_) {
    if (flag->positional) continue;
    if (std::find(flag->names.begin(), flag->names.end(), name) != flag->names.end()) {
      return flag.get();
    }
  }
  return nullptr;
}

bool Flags::given(std::string_view name) const {
  const Flag* flag = find(name);
  return flag != nullptr && flag->given;
}

Error Flags::unknown(const std::string& argument) const {
  std::string hint;
  if (!argument.starts_with("-")) {
    hint = find("--prompt") != nullptr ? "a prompt goes after -p" : "";
  } else if (const std::string near = nearest(argument, names()); !near.empty()) {
    hint = fmt::format("did you mean {}?", near);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} {} is not known to 'troika {}'{}{}; see 'troika {} --help'",
                           argument.starts_with("-") ? "option" : "argument", in_quotes(argument),
                           verb_, hint.empty() ? "" : ": ", hint, verb_)};
}

// Short names of several letters become long ones, "--name=value" becomes two arguments. Values are
// left alone, whatever they look like.
Result<std::vector<std::string>> Flags::expand(const std::vector<std::string>& arguments) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    const Flag* flag = find(name);
    if (flag == nullptr) {
      if (!long_name(name).empty()) return tl::unexpected<Error>(unknown(argument));
      out.push_back(argument);
      continue;
    }
    if (flag->arity != Arity::kOne) {
      out.push_back(equals == std::string::npos ? flag->name() : argument);
      continue;
    }
    out.push_back(flag->name());
    if (equals != std::string::npos) {
      out.push_back(argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      out.push_back(arguments[++i]);
    } else {
      return make_error(ErrorCode::kInvalidArgument, "{} needs a value; see 'troika {} --help'",
                        name, verb_);
    }
  }
  return out;
}

Status Flags::parse_command_line(const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(std::vector<std::string> expanded, expand(arguments));
  std::reverse(expanded.begin(), expanded.end());  // CLI11 takes them from the back
  try {
    app_->parse(std::move(expanded));
  } catch (const CLI::CallForHelp&) {
    help_requested_ = true;
    return {};
  } catch (const CLI::ParseError& error) {
    return make_error(ErrorCode::kInvalidArgument, "{}; see 'troika {} --help'",
                      printable(error.what()), verb_);
  }
  if (const auto rest = app_->remaining(); !rest.empty()) {
    return tl::unexpected<Error>(unknown(rest.front()));
  }
  return {};
}

Status Flags::read_environment(Flag& flag, const Environment& environment) {
  constexpr std::string_view kPrefix = "LLAMA_ARG_";
  std::vector<std::string> variables = {flag.env};
  if (flag.env.starts_with(kPrefix)) {
    variables.insert(variables.begin(), "TROIKA_" + flag.env.substr(kPrefix.size()));
  }
  for (const std::string& variable : variables) {
    const char* value = environment(variable.c_str());
    if (value == nullptr) continue;
    flag.given = true;
    return flag.set(variable, value);
  }
  return {};
}

// What is read would be lost, of two that are written one; standard input can be read once.
Status Flags::check_files() const {
  using enum Flag::File;
  constexpr std::string_view kStandard = "-";
  const auto check = [&](const Flag& one, const Flag& other) -> Status {
    const bool both_written = one.file == kWritten && other.file == kWritten;
    const bool both_read = one.file == kRead && other.file == kRead;
    if (one.path == kStandard && other.path == kStandard && (both_read || both_written)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} and {} both {}; give a path for one of them", one.name(), other.name(),
                        both_read ? "read standard input" : "write to standard output");
    }
    if (one.path.empty() || other.path.empty()) return {};
    const bool standard = one.path == kStandard || other.path == kStandard;
    if (standard || both_read || !is_same_file(one.path, other.path)) return {};
    return make_error(ErrorCode::kInvalidArgument,
                      "{} and {} name the same file, {}: {}; give another path", one.name(),
                      other.name(), in_quotes(one.path),
                      both_written ? "both would be written there" : "it would be lost");
  };
  for (size_t i = 0; i < flags_.size(); ++i) {
    if (flags_[i]->file == kNone || !flags_[i]->given) continue;
    for (size_t j = 0; j < i; ++j) {
      if (flags_[j]->file == kNone || !flags_[j]->given) continue;
      RETURN_IF_ERROR(check(*flags_[i], *flags_[j]));
    }
  }
  return {};
}

Status Flags::parse(const std::vector<std::string>& arguments, const Environment& environment) {
  RETURN_IF_ERROR(parse_command_line(arguments));
  if (help_requested_) return {};
  for (const auto& flag : flags_) {
    const std::vector<std::string>& values = flag->option->results();
    if (values.empty()) {
      if (!flag->env.empty()) RETURN_IF_ERROR(read_environment(*flag, environment));
      continue;
    }
    flag->given = true;
    flag->clear();
    // As llama.cpp has it, the last one counts.
    for (size_t i = flag->repeats ? 0 : values.size() - 1; i < values.size(); ++i) {
      RETURN_IF_ERROR(flag->set(flag->name(), values[i]));
    }
  }
  return check_files();
}

}  // namespace troika::cli
