// Two hash tables with open addressing, made for vocabularies: built once, then only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troika::model {

// From a name to its position in a vector of names, which the caller keeps and passes.
class NameIndex {
 public:
  explicit NameIndex(uint64_t seed) : seed_(seed) {}

  // Makes room for `n` names; must be called before the first insert.
  void reserve(size_t n);
  // Enters names[position]; an equal name entered before is replaced.
  void insert(const std::vector<std::string>& names, uint32_t position);
  std::optional<uint32_t> find(const std::vector<std::string>& names, std::string_view name) const;

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t position_plus_one = 0;  // 0: empty
  };
  size_t locate(const std::vector<std::string>& names, std::string_view name, uint64_t hash) const;

  uint64_t seed_;
  std::vector<Slot> slots_;
};

// From a pair of ids to a number.
class PairIndex {
 public:
  explicit PairIndex(uint64_t seed) : seed_(seed) {}

  void reserve(size_t n);
  // Does nothing if the pair is there already.
  void insert(uint32_t left, uint32_t right, uint32_t value);
  std::optional<uint32_t> find(uint32_t left, uint32_t right) const;

 private:
  struct Slot {
    uint64_t pair = 0;
    uint32_t value_plus_one = 0;  // 0: empty
  };
  size_t locate(uint64_t pair) const;

  uint64_t seed_;
  std::vector<Slot> slots_;
};

}  // namespace troika::model
