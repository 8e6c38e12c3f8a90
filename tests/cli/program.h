// Runs the built program and collects what it wrote; for tests.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troika {

struct Outcome {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;
  double seconds = 0;
  int64_t peak_rss_bytes = 0;
};

struct Command {
  std::vector<std::string> arguments;
  std::string input;  // standard input; closed after it
  bool keep_input_open = false;
  std::map<std::string, std::string> environment;  // added to this process's
  std::string out_path;                            // standard output goes to this file instead
  std::string folder;                              // working folder
  double timeout_seconds = 120;                    // killed after it
  size_t close_out_after = 0;  // bytes of output after which the reader goes away; 0: never
  // Called every few milliseconds while the program runs.
  std::function<void(pid_t, const Outcome& so_far)> watch;
};

Outcome run(const Command& command);
inline Outcome troika_run(std::vector<std::string> arguments) {
  Command command;
  command.arguments = std::move(arguments);
  return run(command);
}

// Whether the program was built with a sanitizer, many times slower than without.
bool sanitized();
// Fails the test if it took longer than a second or 200 MB, the bound for refusing a hostile input.
// Sanitizers need more of both: then nothing is checked.
void expect_quick_and_small(const Outcome& outcome);
// Fails the test unless this is one error line, nothing on stdout, and the exit code.
void expect_error(const Outcome& outcome, int exit_code, const std::string& part);
// The one JSON value on stdout; fails the test if it is anything else.
nlohmann::json expect_json(const Outcome& outcome);

// A folder of this test program for files that it makes; removed at its end.
const std::string& scratch_folder();
// A small model of random weights, made once by `troika synth`.
const std::string& tiny_model();
// The same, trained for 65536 tokens as its file says: its answers take long to fill a context.
const std::string& long_context_model();
// The default model's path in the clone; empty if it is not installed.
std::string default_model();

}  // namespace troika
