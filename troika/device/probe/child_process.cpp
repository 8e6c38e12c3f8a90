#include "troika/device/probe/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

#include "troika/base/watched_time.h"

extern char** environ;

namespace troika::device {
namespace {

// How often a child that writes nothing is looked after.
constexpr Duration kTick = std::chrono::milliseconds(10);
// More between two looks was no time in which the child could have done anything.
constexpr Duration kLongestGap = 50 * kTick;
// How long the end of a killed child is waited for: a call that hangs in the kernel may not end.
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr size_t kLastWordsBytes = 4096;
// Of 16 KiB; more than a pipe holds. Whoever still writes after the child's end is not listened to.
constexpr int kPiecesLeft = 80;

std::string system_message(int code) { return std::generic_category().message(code); }

class Pipe {
 public:
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    read_ = ends[0];
    write_ = ends[1];
    // Only our end: what the child writes to may block.
    fcntl(read_, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool ok() const { return read_ >= 0; }
  int read_end() const { return read_; }
  int write_end() const { return write_; }
  void close_read() { close_end(read_); }
  void close_write() { close_end(write_); }

 private:
  static void close_end(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  int read_ = -1;
  int write_ = -1;
};

// What posix_spawn() is told: streams, signals, a process group of its own.
class SpawnPlan {
 public:
  SpawnPlan(const Pipe& out, const Pipe& err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out.write_end(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, err.write_end(), STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
#endif
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) {
      sigaddset(&usual, signal);
    }
    posix_spawnattr_setsigdefault(&attributes_, &usual);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  Result<pid_t> spawn(std::vector<std::string> arguments) const {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    const int code =
        posix_spawn(&pid, pointers[0], &actions_, &attributes_, pointers.data(), environ);
    if (code == 0) return pid;
    return make_error(ErrorCode::kIo, "cannot start {}: {}", arguments[0], system_message(code));
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A started child. Nothing of it is left when this is destroyed.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Leaves it to be reaped, so that its number is nobody else's yet.
  bool has_ended() const {
    siginfo_t info{};
    const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 || info.si_pid == pid_;
  }

  // Kills it and all that it started, if they still run, and reaps it.
  int end() {
    if (reaped_) return status_;
    reaped_ = true;
    kill(-pid_, SIGKILL);
    const TimePoint until = system_clock().now() + kPatience;
    while (!has_ended() && system_clock().now() < until) std::this_thread::sleep_for(kTick / 10);
    if (has_ended()) {
      waitpid(pid_, &status_, 0);
    } else {
      // Ends whenever the kernel lets it go.
      std::thread([pid = pid_] { waitpid(pid, nullptr, 0); }).detach();
    }
    return status_;
  }

 private:
  const pid_t pid_;
  bool reaped_ = false;
  int status_ = 0;
};

// Takes a piece of what is there, if anything; closes the end when there will be no more.
bool take(Pipe& pipe, std::string& text) {
  char buffer[1 << 14];
  while (pipe.read_end() >= 0) {
    const ssize_t n = read(pipe.read_end(), buffer, sizeof buffer);
    if (n > 0) {
      text.append(buffer, static_cast<size_t>(n));
      return true;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    pipe.close_read();
  }
  return false;
}

void keep_the_end(std::string& text) {
  if (text.size() > kLastWordsBytes) text.erase(0, text.size() - kLastWordsBytes);
}

ChildOutcome told_by(int status) {
  ChildOutcome outcome;
  outcome.end = WIFSIGNALED(status) ? ChildOutcome::End::kSignalled : ChildOutcome::End::kExited;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace

Result<ChildOutcome> run_child(const ChildCommand& command) {
  Pipe out;
  Pipe err;
  if (!out.ok() || !err.ok()) {
    return make_error(ErrorCode::kIo, "cannot start {}: {}", command.arguments[0],
                      system_message(errno));
  }
  ASSIGN_OR_RETURN(const pid_t pid, SpawnPlan(out, err).spawn(command.arguments));
  Child child(pid);
  out.close_write();
  err.close_write();

  WatchedTime running(kLongestGap);
  std::string output;
  std::string last_words;
  bool ended = false;
  while (!ended) {
    // Looked at before the pipes: what it wrote before its end is then all in them.
    ended = child.has_ended();
    pollfd ends[2] = {{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}};
    const auto tick = std::chrono::duration_cast<std::chrono::milliseconds>(kTick).count();
    poll(ends, 2, ended ? 0 : static_cast<int>(tick));
    for (int piece = 0; piece < (ended ? kPiecesLeft : 1); ++piece) {
      const bool more = take(out, output);
      if (!take(err, last_words) && !more) break;
      keep_the_end(last_words);
    }
    ChildOutcome cut;
    cut.end = output.size() > command.max_output_bytes ? ChildOutcome::End::kWroteTooMuch
                                                       : ChildOutcome::End::kTimedOut;
    if (cut.end == ChildOutcome::End::kWroteTooMuch ||
        (!ended && running.look() >= command.time_limit)) {
      cut.last_words = std::move(last_words);
      return cut;
    }
    if (command.cancelled && command.cancelled()) {
      return make_error(ErrorCode::kCancelled, "interrupted while {} ran", command.arguments[0]);
    }
  }
  ChildOutcome outcome = told_by(child.end());
  outcome.output = std::move(output);
  outcome.last_words = std::move(last_words);
  return outcome;
}

}  // namespace troika::device
