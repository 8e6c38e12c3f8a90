#include "troika/device/openvino/module/graph_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "troika/base/cache_file.h"

namespace troika::device::openvino {
namespace {

// Of all graphs: those of a few models of some billion weights. The ones unused for longest go.
constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
constexpr size_t kMaxFiles = 4096;

constexpr std::array<char, 8> kMagic = {'T', 'R', 'K', 'A', 'O', 'V', 'G', '1'};

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t identity_bytes = 0;
  uint64_t graph_bytes = 0;
  uint64_t checksum = 0;  // of identity and graph
};

// FNV-1a over words of 8 bytes: finds damage, at the speed of the disk.
uint64_t checksum(std::string_view bytes, uint64_t sum = 0xcbf29ce484222325u) {
  constexpr uint64_t kPrime = 0x100000001b3u;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 29;
  }
  for (; at < bytes.size(); ++at) {
    sum = (sum ^ static_cast<unsigned char>(bytes[at])) * kPrime;
  }
  return sum;
}

bool read(std::ifstream& file, char* to, uint64_t bytes) {
  return static_cast<bool>(file.read(to, static_cast<std::streamsize>(bytes)));
}

}  // namespace

std::string GraphStore::path_of(const std::string& identity) const {
  return fmt::format("{}/{:016x}.openvino", folder_, checksum(identity));
}

std::optional<std::string> GraphStore::find(const std::string& identity) const {
  if (!enabled()) return std::nullopt;
  const std::string path = path_of(identity);
  std::error_code failed;
  const uint64_t file_bytes = std::filesystem::file_size(path, failed);
  if (failed || file_bytes < sizeof(Header)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  Header header;
  if (!read(file, reinterpret_cast<char*>(&header), sizeof(header))) return std::nullopt;
  // The sizes are those of a file that is there: what is allocated below is bounded by it.
  const uint64_t rest = file_bytes - sizeof(Header);
  if (header.magic != kMagic || header.identity_bytes != identity.size() ||
      header.graph_bytes > rest || header.identity_bytes != rest - header.graph_bytes) {
    return std::nullopt;
  }
  std::string stored(identity.size(), '\0');
  std::string graph(header.graph_bytes, '\0');
  if (!read(file, stored.data(), stored.size()) || !read(file, graph.data(), graph.size()) ||
      stored != identity || checksum(graph, checksum(identity)) != header.checksum) {
    return std::nullopt;
  }
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), failed);
  return graph;
}

void GraphStore::keep(const std::string& identity, const std::string& graph) const {
  if (!enabled()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  const std::string path = path_of(identity);
  const std::string part = fmt::format("{}.{}.part", path, getpid());
  Header header;
  header.identity_bytes = identity.size();
  header.graph_bytes = graph.size();
  header.checksum = checksum(graph, checksum(identity));
  bool written = false;
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file << identity << graph;
    file.flush();
    written = file.good();
  }
  if (written) std::filesystem::rename(part, path, failed);
  if (!written || failed) std::filesystem::remove(part, failed);
  keep_newest(folder_, kMaxFiles, kMaxBytes);
}

}  // namespace troika::device::openvino
