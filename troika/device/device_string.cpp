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

bool parse_core(std::string_view text, int& core) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  return error == std::errc() && end == text.data() + text.size() && core >= 0 && core <= kMaxCore;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Result<DeviceSpec> parse_spec(std::string_view text) {
  const auto bad = [&](std::string_view what) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\": {}; write name[:instance][@first[-last]], e.g. cpu@0-1", text,
                      what);
  };
  DeviceSpec spec;
  spec.text = text;
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    const std::string_view range = rest.substr(at + 1);
    const size_t dash = range.find('-');
    int first = 0;
    int last = 0;
    if (!parse_core(range.substr(0, dash), first)) return bad("the core after @ is not a number");
    last = first;
    if (dash != std::string_view::npos && !parse_core(range.substr(dash + 1), last)) {
      return bad("the last core is not a number");
    }
    if (last < first) return bad("the last core is below the first");
    for (int core = first; core <= last; ++core) spec.cores.push_back(core);
    rest = rest.substr(0, at);
  }
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    spec.instance = rest.substr(colon + 1);
    if (!is_name(spec.instance)) return bad("the instance after : is not a name");
    rest = rest.substr(0, colon);
  }
  spec.name = rest;
  if (!is_name(spec.name)) return bad("not a device name");
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
