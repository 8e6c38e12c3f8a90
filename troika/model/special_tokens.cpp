#include "troika/model/special_tokens.h"

#include <algorithm>
#include <tuple>

namespace troika::model {
namespace {

// For each position of the joined text, how many bytes of its span are left if it is parsed.
class ParsedBytes {
 public:
  explicit ParsedBytes(std::span<const TextSpan> spans) : spans_(spans) {}

  // `position` must not go down from call to call.
  size_t left_at(size_t position) {
    while (index_ < spans_.size() && position >= begin_ + spans_[index_].text.size()) {
      begin_ += spans_[index_++].text.size();
    }
    if (index_ == spans_.size() || !spans_[index_].parse_special) return 0;
    return begin_ + spans_[index_].text.size() - position;
  }

 private:
  std::span<const TextSpan> spans_;
  size_t index_ = 0;
  size_t begin_ = 0;
};

struct Candidate {
  SpecialTokens::Match match;
  size_t parsed;

  // The heap's top is the longest, then the leftmost.
  bool operator<(const Candidate& other) const {
    return std::tuple(match.length, other.match.begin) <
           std::tuple(other.match.length, match.begin);
  }
};

}  // namespace

Result<SpecialTokens> SpecialTokens::create(const std::vector<std::string>& tokens,
                                            const std::vector<TokenType>& types) {
  SpecialTokens out;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const bool user_defined = types[id] == TokenType::kUserDefined;
    const bool special = types[id] == TokenType::kControl || types[id] == TokenType::kUnknown;
    if ((!user_defined && !special) || tokens[id].empty()) continue;
    if (tokens[id].size() > kMaxNameBytes) {
      return make_error(ErrorCode::kInvalidData,
                        "[model/tokenizer] special token {} has a name of {} bytes; at most {} "
                        "are supported",
                        id, tokens[id].size(), kMaxNameBytes);
    }
    out.add(tokens[id], static_cast<TokenId>(id), user_defined);
  }
  return out;
}

void SpecialTokens::add(std::string_view name, TokenId id, bool user_defined) {
  begins_name_[static_cast<uint8_t>(name[0])] = true;
  int32_t node = 0;
  for (char c : name) {
    const uint8_t byte = static_cast<uint8_t>(c);
    int32_t next = child_of(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .sibling = nodes_[static_cast<size_t>(node)].child});
      nodes_[static_cast<size_t>(node)].child = next;
    }
    node = next;
  }
  nodes_[static_cast<size_t>(node)].id = id;
  nodes_[static_cast<size_t>(node)].user_defined = user_defined;
}

int32_t SpecialTokens::child_of(int32_t node, uint8_t byte) const {
  int32_t child = nodes_[static_cast<size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].sibling;
  }
  return child;
}

SpecialTokens::Match SpecialTokens::longest(std::string_view text, size_t parsed,
                                            size_t below) const {
  Match match = {0, 0, -1};
  int32_t node = 0;
  for (size_t i = 0; i < text.size() && i + 1 < below; ++i) {
    node = child_of(node, static_cast<uint8_t>(text[i]));
    if (node < 0) break;
    const Node& reached = nodes_[static_cast<size_t>(node)];
    if (reached.id >= 0 && (reached.user_defined || i < parsed)) match = {0, i + 1, reached.id};
  }
  return match;
}

std::vector<SpecialTokens::Match> SpecialTokens::find(std::string_view text,
                                                      std::span<const TextSpan> spans) const {
  std::vector<Candidate> candidates;
  ParsedBytes parsed(spans);
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!begins_name_[static_cast<uint8_t>(text[begin])]) continue;
    const size_t left = parsed.left_at(begin);
    Match match = longest(text.substr(begin), left, kMaxNameBytes + 1);
    match.begin = begin;
    if (match.length > 0) candidates.push_back({match, left});
  }

  std::make_heap(candidates.begin(), candidates.end());
  std::vector<Match> found;
  std::vector<bool> taken(candidates.empty() ? 0 : text.size());
  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end());
    Candidate candidate = candidates.back();
    candidates.pop_back();
    Match& match = candidate.match;
    // What is taken already is no shorter, so an overlap covers one of the two ends.
    if (taken[match.begin]) continue;
    if (!taken[match.begin + match.length - 1]) {
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(match.begin), match.length, true);
      found.push_back(match);
      continue;
    }
    const Match shorter = longest(text.substr(match.begin), candidate.parsed, match.length);
    if (shorter.length == 0) continue;
    candidate.match = {match.begin, shorter.length, shorter.id};
    candidates.push_back(candidate);
    std::push_heap(candidates.begin(), candidates.end());
  }
  std::sort(found.begin(), found.end(),
            [](const Match& a, const Match& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace troika::model
