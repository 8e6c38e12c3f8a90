#include "cli/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "troika/base/result.h"

namespace troika::cli {
namespace {

// Each in a process of its own, since a second signal ends it.
TEST(InterruptDeathTest, TheFirstIsTold) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGINT);
        std::_Exit(interrupted() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, ASecondEndsTheProgramAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          install_signal_handlers();
          raise(SIGINT);
          raise(signal);
          std::_Exit(0);
        },
        ::testing::ExitedWithCode(exit_code(ErrorCode::kCancelled)), "");
  }
}

TEST(InterruptDeathTest, AfterClearingTheNextIsAFirst) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGINT);
        clear_interrupt();
        if (interrupted()) std::_Exit(1);
        raise(SIGINT);
        std::_Exit(interrupted() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace troika::cli
