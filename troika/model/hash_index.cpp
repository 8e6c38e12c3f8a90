#include "troika/model/hash_index.h"

#include <bit>
#include <cstring>

namespace troika::model {
namespace {

constexpr uint64_t kMixA = 0x9E3779B97F4A7C15u;  // odd numbers with well spread bits
constexpr uint64_t kMixB = 0xD6E8FEB86659FD93u;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 32) * kMixB;
  x = (x ^ x >> 29) * kMixA;
  return x ^ x >> 32;
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = seed ^ bytes.size() * kMixA;
  while (bytes.size() > 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix(hash ^ word) + seed;
    bytes.remove_prefix(8);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return mix(hash ^ word);
}

// At most half full, so that a search ends soon.
size_t slots_for(size_t n) { return std::bit_ceil(2 * n + 1); }

}  // namespace

void NameIndex::reserve(size_t n) { slots_.assign(slots_for(n), Slot{}); }

size_t NameIndex::locate(const std::vector<std::string>& names, std::string_view name,
                         uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash >> 32 & mask;
  while (slots_[at].position_plus_one != 0 && (slots_[at].hash != static_cast<uint32_t>(hash) ||
                                               names[slots_[at].position_plus_one - 1] != name)) {
    at = (at + 1) & mask;
  }
  return at;
}

void NameIndex::insert(const std::vector<std::string>& names, uint32_t position) {
  const uint64_t hash = hash_bytes(names[position], seed_);
  slots_[locate(names, names[position], hash)] = {static_cast<uint32_t>(hash), position + 1};
}

std::optional<uint32_t> NameIndex::find(const std::vector<std::string>& names,
                                        std::string_view name) const {
  const Slot& slot = slots_[locate(names, name, hash_bytes(name, seed_))];
  if (slot.position_plus_one == 0) return std::nullopt;
  return slot.position_plus_one - 1;
}

void PairIndex::reserve(size_t n) { slots_.assign(slots_for(n), Slot{}); }

size_t PairIndex::locate(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  size_t at = mix(pair ^ seed_) & mask;
  while (slots_[at].value_plus_one != 0 && slots_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void PairIndex::insert(uint32_t left, uint32_t right, uint32_t value) {
  const uint64_t pair = uint64_t{left} << 32 | right;
  Slot& slot = slots_[locate(pair)];
  if (slot.value_plus_one == 0) slot = {pair, value + 1};
}

std::optional<uint32_t> PairIndex::find(uint32_t left, uint32_t right) const {
  const Slot& slot = slots_[locate(uint64_t{left} << 32 | right)];
  if (slot.value_plus_one == 0) return std::nullopt;
  return slot.value_plus_one - 1;
}

}  // namespace troika::model
