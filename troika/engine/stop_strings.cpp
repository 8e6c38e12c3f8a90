#include "troika/engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace troika::engine {

StopStrings::StopStrings(const std::vector<std::string>& stops) : nodes_(1) {
  for (const std::string& stop : stops) add(stop);
  link();
}

int32_t StopStrings::child(int32_t parent, uint8_t byte) {
  int32_t next = node(parent).first_child;
  while (next >= 0 && node(next).byte != byte) next = node(next).next_sibling;
  return next;
}

int32_t StopStrings::step(int32_t from, uint8_t byte) {
  for (;; from = node(from).fail) {
    const int32_t next = child(from, byte);
    if (next >= 0) return next;
    if (from == 0) return 0;
  }
}

void StopStrings::add(std::string_view stop) {
  if (stop.empty()) return;
  int32_t at = 0;
  for (const char c : stop) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      Node fresh;
      fresh.byte = byte;
      fresh.depth = node(at).depth + 1;
      fresh.next_sibling = std::exchange(node(at).first_child, next);
      nodes_.push_back(fresh);
    }
    at = next;
  }
  node(at).match = node(at).depth;
}

void StopStrings::link() {
  // By depth, as each beginning needs the links of all shorter ones.
  std::vector<int32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const int32_t parent = order[i];
    for (int32_t at = node(parent).first_child; at >= 0; at = node(at).next_sibling) {
      if (parent != 0) node(at).fail = step(node(parent).fail, node(at).byte);
      node(at).match = std::max(node(at).match, node(node(at).fail).match);
      order.push_back(at);
    }
  }
}

std::string StopStrings::push(std::string_view text) {
  if (stopped_) return {};
  const size_t seen = held_.size();
  held_ += text;
  for (size_t end = seen; end < held_.size();) {
    state_ = step(state_, static_cast<uint8_t>(held_[end++]));
    if (node(state_).match == 0) continue;
    stopped_ = true;
    held_.resize(end - static_cast<size_t>(node(state_).match));
    return std::exchange(held_, {});
  }
  const size_t released = held_.size() - static_cast<size_t>(node(state_).depth);
  std::string out = held_.substr(0, released);
  held_.erase(0, released);
  return out;
}

std::string StopStrings::finish() {
  state_ = 0;
  return std::exchange(held_, {});
}

}  // namespace troika::engine
