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
// A speed that is known from less than this says little of the rest.
constexpr double kLeastPart = 0.02;
constexpr Duration kLeastTime = seconds(1);

}  // namespace

Progress::Progress(Console& console, std::string what, bool time_left)
    : console_(console),
      what_(std::move(what)),
      begun_(system_clock().now()),
      shown_(begun_),
      time_left_(time_left) {}

Progress::~Progress() {
  if (bar_) console_.status("\r\x1b[K");
}

std::string Progress::left(double part, TimePoint now) {
  if (!time_left_) return "";
  if (first_part_ < 0) {
    first_part_ = part;
    first_told_ = now;
  }
  const double done = part - first_part_;
  if (done < kLeastPart || now - first_told_ < kLeastTime) return "";
  const double s = to_seconds(now - first_told_) / done * (1 - part);
  return s < 90 ? fmt::format(", {:.0f} s left", s) : fmt::format(", {:.0f} min left", s / 60);
}

void Progress::update(uint64_t done, uint64_t all) {
  const TimePoint now = system_clock().now();
  const double part = all == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / all);
  const std::string time = left(part, now);
  if (console_.stderr_is_terminal()) {
    if (now - begun_ < kFirstBar || now - shown_ < kBarStep) return;
    const auto filled = static_cast<size_t>(part * kBarWidth);
    // Cleared to the end: the time left gets shorter.
    console_.status(fmt::format("\r{} [{}{}] {:3.0f} %{}\x1b[K", what_, std::string(filled, '#'),
                                std::string(kBarWidth - filled, ' '), 100 * part, time));
    bar_ = true;
  } else {
    if (now - shown_ < kLineStep) return;
    console_.note(fmt::format("{}: {:.0f} %{}", what_, 100 * part, time));
  }
  shown_ = now;
}

}  // namespace troika::cli
