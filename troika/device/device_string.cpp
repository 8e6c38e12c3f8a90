#include "troika/device/device_string.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace troika::device {
namespace {

// More cores than any machine has: a bound on what a number in a device string may be.
constexpr int kMaxCore = 4095;
// Many more than all devices of a chip need; keeps the messages short.
constexpr size_t kMaxBytes = 1024;
// Wrappers around a device; each has a thread of its own.
constexpr int kMaxWrappers = 4;

bool parse_core(std::string_view text, int& core) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  return error == std::errc() && end == text.data() + text.size() && core >= 0 && core <= kMaxCore;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

template <class What>
tl::unexpected<Error> bad_spec(std::string_view text, const What& what) {
  return make_error(ErrorCode::kInvalidArgument,
                    "device \"{}\": {}; write name[:instance][@first[-last]], e.g. cpu@0-1", text,
                    what);
}

// @first[-last]
Result<std::vector<int>> parse_cores(std::string_view text, std::string_view range) {
  const size_t dash = range.find('-');
  int first = 0;
  int last = 0;
  if (!parse_core(range.substr(0, dash), first)) {
    return bad_spec(text, "the core after @ is not a number");
  }
  last = first;
  if (dash != std::string_view::npos && !parse_core(range.substr(dash + 1), last)) {
    return bad_spec(text, "the last core is not a number");
  }
  if (last < first) return bad_spec(text, "the last core is below the first");
  std::vector<int> cores;
  for (int core = first; core <= last; ++core) cores.push_back(core);
  return cores;
}

Result<DeviceSpec> parse_device(std::string_view text) {
  DeviceSpec spec;
  spec.text = text;
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    ASSIGN_OR_RETURN(spec.cores, parse_cores(text, rest.substr(at + 1)));
    rest = rest.substr(0, at);
  }
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    spec.instance = rest.substr(colon + 1);
    if (!is_name(spec.instance)) return bad_spec(text, "the instance after : is not a name");
    rest = rest.substr(0, colon);
  }
  spec.name = rest;
  if (!is_name(spec.name)) return bad_spec(text, "not a device name");
  return spec;
}

// A wrapper's instance may carry a value: nan@7.
bool is_wrapper_instance(std::string_view text) {
  const size_t at = text.find('@');
  return is_name(text.substr(0, at)) &&
         (at == std::string_view::npos || is_name(text.substr(at + 1)));
}

Result<DeviceSpec> parse_spec(std::string_view text, int wrappers = 0) {
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return parse_device(text);
  if (wrappers == kMaxWrappers) {
    return bad_spec(text, fmt::format("more than {} devices around another", kMaxWrappers));
  }
  DeviceSpec spec;
  spec.text = text;
  spec.name = text.substr(0, first);
  spec.instance = text.substr(first + 1, second - first - 1);
  if (!is_name(spec.name)) return bad_spec(text, "not a device name");
  if (!is_wrapper_instance(spec.instance)) {
    return bad_spec(text, "the instance between : and : is not a name, or a name@value");
  }
  ASSIGN_OR_RETURN(DeviceSpec wrapped, parse_spec(text.substr(second + 1), wrappers + 1));
  spec.cores = wrapped.cores;
  spec.wrapped.push_back(std::move(wrapped));
  return spec;
}

bool contains(const std::vector<int>& cores, int core) {
  return std::find(cores.begin(), cores.end(), core) != cores.end();
}

}  // namespace

Result<std::vector<DeviceSpec>> parse_device_string(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a list of devices of {} bytes; at most {} are read", text.size(), kMaxBytes);
  }
  std::vector<DeviceSpec> specs;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    ASSIGN_OR_RETURN(DeviceSpec spec, parse_spec(text.substr(begin, comma - begin)));
    for (const DeviceSpec& other : specs) {
      if (other.text == spec.text) {
        return make_error(ErrorCode::kInvalidArgument, "device \"{}\" is named twice", spec.text);
      }
    }
    specs.push_back(std::move(spec));
    begin = comma + 1;
  }
  return specs;
}

Result<std::vector<std::vector<int>>> assign_cores(const std::vector<DeviceSpec>& specs,
                                                   const std::vector<int>& allowed, int limit) {
  std::vector<int> free = allowed;
  size_t unnamed = 0;
  size_t named_cores = 0;
  for (const DeviceSpec& spec : specs) {
    if (spec.cores.empty()) ++unnamed;
    named_cores += spec.cores.size();
    for (const int core : spec.cores) {
      if (!contains(allowed, core)) {
        return make_error(ErrorCode::kInvalidArgument,
                          "device \"{}\": core {} is not there or not allowed; allowed are {}",
                          spec.text, core, fmt::join(allowed, ","));
      }
      free.erase(std::remove(free.begin(), free.end(), core), free.end());
    }
  }
  if (free.empty()) free = allowed;
  if (limit > 0) {
    const size_t left = static_cast<size_t>(limit) > named_cores
                            ? static_cast<size_t>(limit) - named_cores
                            : size_t{1};
    if (free.size() > left) free.resize(left);
  }
  std::vector<std::vector<int>> assigned;
  size_t next = 0;
  size_t seen = 0;
  for (const DeviceSpec& spec : specs) {
    if (!spec.cores.empty()) {
      assigned.push_back(spec.cores);
      continue;
    }
    // An even share of the free cores; at least one, shared if there are too few.
    const size_t end = free.size() * (seen + 1) / unnamed;
    std::vector<int> share(free.begin() + static_cast<int64_t>(std::min(next, end)),
                           free.begin() + static_cast<int64_t>(end));
    if (share.empty()) share.push_back(free[seen % free.size()]);
    next = std::max(next, end);
    ++seen;
    assigned.push_back(std::move(share));
  }
  return assigned;
}

}  // namespace troika::device
