#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "cli/interrupt.h"

namespace troika::cli {
namespace {

using Kind = LineReader::Kind;

// The reading end of a pipe that holds `text`, its writing end closed.
int pipe_of(std::string_view text) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  return ends[0];
}

TEST(LineReader, LinesEndsAndTheLastWithoutOne) {
  const int fd = pipe_of("one\r\n\ntwo \xff\nthree");
  LineReader reader(fd);
  for (const char* expected : {"one", "", "two \xff", "three"}) {
    const auto line = reader.next();
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->kind, Kind::kLine);
    EXPECT_EQ(line->text, expected);
  }
  EXPECT_EQ(reader.next()->kind, Kind::kEnd);
  EXPECT_EQ(reader.next()->kind, Kind::kEnd);
  close(fd);
}

// A reader on a pipe to which nothing is written, as on a terminal before a key is pressed. A wait
// that is not interrupted gets a line after 20 s, so that a test fails and does not hang.
class Interrupt : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(ends_), 0);
    install_signal_handlers();
    clear_interrupt();
    rescue_ = std::thread([this] {
      for (int i = 0; i < 2000 && !done_; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_EQ(write(ends_[1], "late\n", 5), 5);
    });
  }
  void TearDown() override {
    done_ = true;
    rescue_.join();
    clear_interrupt();
    close(ends_[0]);
    close(ends_[1]);
  }

  int input() const { return ends_[0]; }
  void type(std::string_view text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  int ends_[2] = {-1, -1};
  std::atomic<bool> done_{false};
  std::thread rescue_;
};

TEST_F(Interrupt, BeforeTheWaitEndsItAtOnce) {
  LineReader reader(input());
  raise(SIGINT);
  ASSERT_EQ(reader.next()->kind, Kind::kInterrupted);
  ASSERT_EQ(reader.next()->kind, Kind::kInterrupted);  // until it is cleared
  clear_interrupt();
  type("next\n");
  EXPECT_EQ(reader.next()->text, "next");
}

TEST_F(Interrupt, GivesUpWhatWasTyped) {
  LineReader reader(input());
  type("one\ntwo\nthr");
  EXPECT_EQ(reader.next()->text, "one");
  raise(SIGINT);
  ASSERT_EQ(reader.next()->kind, Kind::kInterrupted);
  clear_interrupt();
  type("four\n");
  EXPECT_EQ(reader.next()->text, "four");
}

TEST_F(Interrupt, TakenByAnotherThreadEndsTheWait) {
  LineReader reader(input());
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(pthread_self(), SIGINT);
  });
  const Kind kind = reader.next()->kind;
  other.join();
  EXPECT_EQ(kind, Kind::kInterrupted);
}

TEST_F(Interrupt, AtAnyMomentEndsTheWait) {
  LineReader reader(input());
  const pthread_t waiting = pthread_self();
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> begun{false};
    std::thread other([&] {
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(round));
      pthread_kill(waiting, SIGINT);
    });
    begun = true;
    const Kind kind = reader.next()->kind;
    other.join();
    ASSERT_EQ(kind, Kind::kInterrupted) << "round " << round;
    clear_interrupt();
  }
}

TEST(LineReader, TellsAnUnreadableDescriptor) {
  LineReader reader(-1);
  EXPECT_EQ(reader.next().error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace troika::cli
