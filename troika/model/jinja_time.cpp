#include "troika/model/jinja_time.h"

#include <array>

namespace troika::model::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

bool is_date(const std::tm& t) {
  return t.tm_mon >= 0 && t.tm_mon < 12 && t.tm_wday >= 0 && t.tm_wday < 7 && t.tm_mday >= 1 &&
         t.tm_mday <= 31 && t.tm_hour >= 0 && t.tm_hour < 24 && t.tm_min >= 0 && t.tm_min < 60 &&
         t.tm_sec >= 0 && t.tm_sec <= 60 && t.tm_yday >= 0 && t.tm_yday < 366 &&
         t.tm_year >= -1899 && t.tm_year < 8100;
}

// `%-d` leaves out the leading zeros.
std::string number(int value, int width, bool padded) {
  return padded ? fmt::format("{:0{}}", value, width) : fmt::format("{}", value);
}

Result<std::string> directive(const std::tm& t, char c, bool padded) {
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  switch (c) {
    case 'a':
      return std::string(kDays[static_cast<size_t>(t.tm_wday)].substr(0, 3));
    case 'A':
      return std::string(kDays[static_cast<size_t>(t.tm_wday)]);
    case 'b':
    case 'h':
      return std::string(kMonths[static_cast<size_t>(t.tm_mon)].substr(0, 3));
    case 'B':
      return std::string(kMonths[static_cast<size_t>(t.tm_mon)]);
    case 'd':
      return number(t.tm_mday, 2, padded);
    case 'e':
      return padded ? fmt::format("{:2}", t.tm_mday) : fmt::format("{}", t.tm_mday);
    case 'm':
      return number(t.tm_mon + 1, 2, padded);
    case 'y':
      return number((t.tm_year + 1900) % 100, 2, padded);
    case 'Y':
      return number(t.tm_year + 1900, 1, padded);
    case 'H':
      return number(t.tm_hour, 2, padded);
    case 'I':
      return number(hour12, 2, padded);
    case 'M':
      return number(t.tm_min, 2, padded);
    case 'S':
      return number(t.tm_sec, 2, padded);
    case 'j':
      return number(t.tm_yday + 1, 3, padded);
    case 'w':
      return number(t.tm_wday, 1, padded);
    case 'p':
      return std::string(t.tm_hour < 12 ? "AM" : "PM");
    case 'F':
      return fmt::format("{}-{:02}-{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
    case 'T':
      return fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
    case '%':
      return std::string("%");
    default:
      return make_error(ErrorCode::kUnsupported, "strftime_now: a directive that is not known");
  }
}

}  // namespace

Result<std::string> format_time(const std::tm& time, std::string_view format) {
  if (!is_date(time)) return make_error(ErrorCode::kInvalidData, "strftime_now: not a valid time");
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    const bool padded = format[++i] != '-';
    if (!padded) ++i;
    ASSIGN_OR_RETURN(const std::string part,
                     directive(time, i < format.size() ? format[i] : '\0', padded));
    out += part;
  }
  return out;
}

}  // namespace troika::model::jinja
