// The table of verbs. A new verb is one file, one factory here and one line in verbs.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/verb.h"

namespace troika::cli {

std::unique_ptr<Verb> make_bench();
std::unique_ptr<Verb> make_chat();
std::unique_ptr<Verb> make_completion();
std::unique_ptr<Verb> make_devices();
std::unique_ptr<Verb> make_doctor();
std::unique_ptr<Verb> make_gallery();
std::unique_ptr<Verb> make_inspect();
std::unique_ptr<Verb> make_perplexity();
std::unique_ptr<Verb> make_probe_device();
std::unique_ptr<Verb> make_run();
std::unique_ptr<Verb> make_simulate();
std::unique_ptr<Verb> make_sweep();
std::unique_ptr<Verb> make_synth();
std::unique_ptr<Verb> make_tokenize();
std::unique_ptr<Verb> make_plan();
std::unique_ptr<Verb> make_reproduce();
std::unique_ptr<Verb> make_profile();
std::unique_ptr<Verb> make_soc();
std::unique_ptr<Verb> make_trace();

struct VerbEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Verb> (*make)();
};

// Those for people; find_verb() knows one more, which the program starts itself.
std::span<const VerbEntry> verbs();
// By name or by a name that other programs use for it ("show"); nullptr if there is none.
const VerbEntry* find_verb(std::string_view name);
// "unknown verb ...", with the nearest one.
Error unknown_verb(std::string_view name);

}  // namespace troika::cli
