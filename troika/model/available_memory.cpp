#include "troika/model/available_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace troika::model {
namespace {

// The number in a file that holds just one; nullopt for "max" and for no such file.
std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

// The number after `key` in a file of lines "key number".
std::optional<uint64_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

std::optional<uint64_t> least(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* file_cache;  // key in memory.stat
};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", "inactive_file"};

std::optional<uint64_t> left_in_group(const std::string& folder, const GroupFiles& files) {
  const auto limit = read_number(folder + files.limit);
  const auto usage = read_number(folder + files.usage);
  if (!limit || !usage) return std::nullopt;
  const uint64_t cache = read_field(folder + "/memory.stat", files.file_cache).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

// A group is also bound by the limits of all groups above it.
std::optional<uint64_t> left_in_groups(const std::string& root, std::string path,
                                       const GroupFiles& files) {
  std::optional<uint64_t> left = left_in_group(root, files);
  while (!path.empty() && path != "/") {
    left = least(left, left_in_group(root + path, files));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return left;
}

}  // namespace

std::optional<uint64_t> available_memory_bytes() {
  std::optional<uint64_t> left;
  if (const auto kib = read_field("/proc/meminfo", "MemAvailable:")) left = *kib * 1024;
  // Lines "id:controllers:path"; version 2 has no controllers.
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      left = least(left, left_in_groups("/sys/fs/cgroup", path, kVersion2));
    } else if (controllers == "memory") {
      left = least(left, left_in_groups("/sys/fs/cgroup/memory", path, kVersion1));
    }
  }
  return left;
}

}  // namespace troika::model
