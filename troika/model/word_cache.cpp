#include "troika/model/word_cache.h"

#include <cstring>
#include <limits>

namespace troika::model {
namespace {

constexpr size_t kMinTextBytes = 4096;
constexpr size_t kEntries = 4096;     // a power of two; 96 KiB
constexpr size_t kMaxWordBytes = 32;  // longer words hardly repeat

size_t entry_of(std::string_view word) {
  uint64_t hash = word.size();
  while (!word.empty()) {
    uint64_t bytes = 0;
    const size_t n = word.size() < sizeof(bytes) ? word.size() : sizeof(bytes);
    std::memcpy(&bytes, word.data(), n);
    hash = (hash ^ bytes) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    word.remove_prefix(n);
  }
  return hash & (kEntries - 1);
}

}  // namespace

WordCache::WordCache(size_t text_bytes) : entries_(text_bytes < kMinTextBytes ? 0 : kEntries) {}

bool WordCache::append_known(std::string_view word, std::vector<TokenId>& out) const {
  if (entries_.empty() || word.size() > kMaxWordBytes) return false;
  const Entry& entry = entries_[entry_of(word)];
  if (entry.word != word) return false;
  for (uint32_t i = 0; i < entry.count; ++i) out.push_back(TokenId{out[entry.begin + i]});
  return true;
}

void WordCache::remember(std::string_view word, size_t begin, size_t end) {
  if (entries_.empty() || word.size() > kMaxWordBytes) return;
  if (end > std::numeric_limits<uint32_t>::max()) return;
  entries_[entry_of(word)] = {word, static_cast<uint32_t>(begin),
                              static_cast<uint32_t>(end - begin)};
}

}  // namespace troika::model
