// Values that are made once for a key and live as long as somebody holds them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

namespace troika {

// Not synchronized.
template <class Key, class Value>
class HeldValues {
 public:
  // Null: nobody holds one.
  std::shared_ptr<Value> find(const Key& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second.lock();
  }

  // In place of one that nobody holds any more; forgets all of those.
  void keep(const Key& key, const std::shared_ptr<Value>& value) {
    std::erase_if(values_, [](const auto& entry) { return entry.second.expired(); });
    values_[key] = value;
  }

  // The sum of size(value) over all that are held.
  template <class Size>
  int64_t total(const Size& size) const {
    int64_t sum = 0;
    for (const auto& [key, weak] : values_) {
      if (const auto value = weak.lock()) sum += size(*value);
    }
    return sum;
  }

 private:
  std::map<Key, std::weak_ptr<Value>> values_;
};

}  // namespace troika
