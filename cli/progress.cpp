#include "cli/progress.h"

#include <algorithm>
#include <chrono>

namespace troika::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstBar = milliseconds(200);  // what is faster than this needs no bar
constexpr Duration kBarStep = milliseconds(100);
constexpr Duration kLineStep = seconds(5);
constexpr size_t kBarWidth = 30;

}  // namespace

Progress::Progress(Console& console, std::string what)
    : console_(console), what_(std::move(what)), begun_(system_clock().now()), shown_(begun_) {}

Progress::~Progress() {
  if (bar_) console_.status("\r\x1b[K");
}

void Progress::update(uint64_t done, uint64_t all) {
  const TimePoint now = system_clock().now();
  const double part = all == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / all);
  if (console_.stderr_is_terminal()) {
    if (now - begun_ < kFirstBar || now - shown_ < kBarStep) return;
    const auto filled = static_cast<size_t>(part * kBarWidth);
    console_.status(fmt::format("\r{} [{}{}] {:3.0f} %", what_, std::string(filled, '#'),
                                std::string(kBarWidth - filled, ' '), 100 * part));
    bar_ = true;
  } else {
    if (now - shown_ < kLineStep) return;
    console_.note(fmt::format("{}: {:.0f} %", what_, 100 * part));
  }
  shown_ = now;
}

}  // namespace troika::cli
