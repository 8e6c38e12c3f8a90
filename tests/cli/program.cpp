#include "tests/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/repository.h"
#include "tests/sanitized.h"

extern char** environ;

namespace troika {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) {
      read = ends[0];
      write = ends[1];
    }
  }
};

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("LLAMA_") || text.starts_with("TROIKA_")) continue;
    if (command.environment.contains(text.substr(0, text.find('=')))) continue;
    variables.push_back(text);
  }
  // What one test run learns of devices is nobody else's.
  if (!command.environment.contains("TROIKA_CACHE")) {
    variables.push_back("TROIKA_CACHE=" + scratch_folder() + "/cache");
  }
  for (const auto& [name, value] : command.environment) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

pid_t start(const Command& command, const Pipe& in, const Pipe& out, const Pipe& err) {
  std::vector<std::string> arguments = {TROIKA_PROGRAM};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> variables = environment_of(command);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(variables);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  int out_fd = out.write;
  if (!command.out_path.empty()) out_fd = open(command.out_path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (!command.folder.empty() && chdir(command.folder.c_str()) != 0) _exit(126);
  dup2(in.read, STDIN_FILENO);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err.write, STDERR_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

// Takes what is there; closes the end when there will be no more.
void take(int& fd, std::string& text) {
  char buffer[1 << 16];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  if (n == 0) close_end(fd);
}

void give(int& fd, const std::string& text, size_t& given, bool keep_open) {
  if (given < text.size()) {
    const ssize_t n = write(fd, text.data() + given, std::min<size_t>(text.size() - given, 4096));
    if (n > 0) given += static_cast<size_t>(n);
    if (n < 0) given = text.size();
  }
  if (given >= text.size() && !keep_open) close_end(fd);
}

void talk(const Command& command, pid_t pid, int in, int out, int err, Outcome& outcome) {
  const auto begin = Clock::now();
  size_t given = 0;
  while (out >= 0 || err >= 0) {
    pollfd ends[3] = {{out, POLLIN, 0}, {err, POLLIN, 0}, {in, POLLOUT, 0}};
    const bool idle_input = in < 0 || given >= command.input.size();
    if (idle_input && command.keep_input_open) ends[2].fd = -1;
    poll(ends, 3, 5);
    if (ends[0].revents != 0) take(out, outcome.out);
    if (ends[1].revents != 0) take(err, outcome.err);
    if (ends[2].fd >= 0 && ends[2].revents != 0) {
      give(in, command.input, given, command.keep_input_open);
    }
    if (command.close_out_after > 0 && outcome.out.size() >= command.close_out_after) {
      close_end(out);
    }
    if (command.watch) command.watch(pid, outcome);
    if (std::chrono::duration<double>(Clock::now() - begin).count() > command.timeout_seconds) {
      kill(pid, SIGKILL);
      break;
    }
  }
  close_end(in);
  close_end(out);
  close_end(err);
}

}  // namespace

Outcome run(const Command& command) {
  static const auto previous = signal(SIGPIPE, SIG_IGN);
  (void)previous;
  Pipe in, out, err;
  Outcome outcome;
  const auto begin = Clock::now();
  const pid_t pid = start(command, in, out, err);
  close_end(in.read);
  close_end(out.write);
  close_end(err.write);
  talk(command, pid, in.write, out.read, err.read, outcome);
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  outcome.peak_rss_bytes = usage.ru_maxrss * 1024;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

void expect_error(const Outcome& outcome, int exit_code, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with('\n'));
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err << "lacks: " << part;
}

bool sanitized() { return kSanitized; }

void expect_quick_and_small(const Outcome& outcome) {
  if (sanitized()) return;
  EXPECT_LT(outcome.seconds, 1.0);
  EXPECT_LT(outcome.peak_rss_bytes, 200'000'000);
}

nlohmann::json expect_json(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  auto value = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << outcome.out;
  return value;
}

const std::string& scratch_folder() {
  struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "troika-test-XXXXXX").string();
    Folder() {
      if (mkdtemp(path.data()) == nullptr) path.clear();
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

const std::string& tiny_model() {
  static const std::string path = [] {
    std::string file = scratch_folder() + "/tiny.gguf";
    const Outcome made =
        troika_run({"synth", "--shape", "tiny", "--type", "Q8_0", "-o", file, "--seed", "3"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return file;
  }();
  return path;
}

const std::string& long_context_model() {
  static const std::string path = [] {
    std::string file = scratch_folder() + "/long.gguf";
    std::ifstream source(tiny_model(), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(source), {});
    const std::string key = "llama.context_length";
    const size_t value = bytes.find(key) + key.size() + 4;  // after the value's type
    const uint32_t tokens = 65536;
    EXPECT_LE(value + sizeof tokens, bytes.size());
    std::memcpy(bytes.data() + value, &tokens, sizeof tokens);
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }();
  return path;
}

std::string default_model() {
  std::string path = repository_path("models/SmolLM2-135M-Instruct.Q4_1.gguf");
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace troika
