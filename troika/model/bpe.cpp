#include "troika/model/bpe.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "troika/model/byte_map.h"

namespace troika::model {
namespace {

constexpr TokenId kNoToken = -1;

// What an error message shows of a name from the file.
std::string_view shown(std::string_view name) { return name.substr(0, 80); }

}  // namespace

Result<Bpe> Bpe::create(const std::vector<std::string>& tokens, const std::vector<bool>& is_special,
                        const std::vector<std::string>& merges, uint64_t seed) {
  Bpe bpe(seed);
  bpe.tokens_ = &tokens;
  bpe.names_.reserve(tokens.size());
  for (uint32_t id = 0; id < tokens.size(); ++id) bpe.names_.insert(tokens, id);
  bpe.usable_.resize(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    bpe.usable_[id] = !is_special[id] && !tokens[id].empty();
  }
  for (int byte = 0; byte < 256; ++byte) {
    const TokenId id = bpe.find(byte_name(static_cast<uint8_t>(byte)));
    bpe.byte_ids_[static_cast<size_t>(byte)] =
        id != kNoToken && bpe.usable_[static_cast<size_t>(id)] ? id : kNoToken;
  }
  if (merges.size() >= std::numeric_limits<uint32_t>::max()) {
    return make_error(ErrorCode::kInvalidData, "[model/tokenizer] {} merges are too many",
                      merges.size());
  }
  bpe.ranks_.reserve(merges.size());
  bpe.merges_.reserve(merges.size());
  for (const std::string& merge : merges) RETURN_IF_ERROR(bpe.add_merge(merge));
  return bpe;
}

Status Bpe::add_merge(std::string_view merge) {
  const size_t rank = merges_.size();
  // A name may begin with a space but not hold one further on.
  const size_t space = merge.find(' ', 1);
  if (space == std::string_view::npos) {
    return make_error(ErrorCode::kInvalidData,
                      "[model/tokenizer] merge {} is \"{}\"; it must be two tokens with a space "
                      "between them",
                      rank, shown(merge));
  }
  const std::string_view left = merge.substr(0, space);
  const std::string_view right = merge.substr(space + 1);
  const std::string result = std::string(left).append(right);
  const Merge entry = {find(left), find(right), find(result)};
  for (const auto& [id, name] : {std::pair(entry.left, left), std::pair(entry.right, right),
                                 std::pair(entry.result, std::string_view(result))}) {
    if (id != kNoToken) continue;
    return make_error(ErrorCode::kInvalidData,
                      "[model/tokenizer] merge {} is \"{}\", but the vocabulary has no token "
                      "\"{}\"",
                      rank, shown(merge), shown(name));
  }
  merges_.push_back(entry);
  if (usable_[static_cast<size_t>(entry.result)]) {
    ranks_.insert(static_cast<uint32_t>(entry.left), static_cast<uint32_t>(entry.right),
                  static_cast<uint32_t>(rank));
  }
  return {};
}

TokenId Bpe::find(std::string_view name) const {
  const auto position = names_.find(*tokens_, name);
  return position ? static_cast<TokenId>(*position) : kNoToken;
}

TokenId Bpe::whole_word(std::string_view word, std::string& name) const {
  name.clear();
  for (char byte : word) name += byte_name(static_cast<uint8_t>(byte));
  const TokenId id = find(name);
  return id != kNoToken && usable_[static_cast<size_t>(id)] ? id : kNoToken;
}

void Bpe::encode(std::string_view word, bool take_whole_word, Workspace& workspace,
                 std::vector<TokenId>& out) const {
  while (word.size() > kMaxWordBytes) {
    encode(word.substr(0, kMaxWordBytes), take_whole_word, workspace, out);
    word.remove_prefix(kMaxWordBytes);
  }
  if (take_whole_word) {
    const TokenId id = whole_word(word, workspace.name);
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  auto& symbols = workspace.symbols;
  symbols.clear();
  const int32_t n = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < n; ++i) {
    symbols.push_back({byte_ids_[static_cast<uint8_t>(word[static_cast<size_t>(i)])], i - 1,
                       i + 1 < n ? i + 1 : -1});
  }
  merge_symbols(workspace);
  for (int32_t i = n > 0 ? 0 : -1; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    const TokenId id = symbols[static_cast<size_t>(i)].id;
    if (id != kNoToken) out.push_back(id);
  }
}

// A queue entry is rank and left position in one number, so that the smallest is the best merge,
// the leftmost of equals. It is stale when the pair at that position is no longer the merge's.
void Bpe::push_pair(Workspace& workspace, int32_t left) const {
  if (left < 0) return;
  const auto& a = workspace.symbols[static_cast<size_t>(left)];
  if (a.next < 0) return;
  const auto& b = workspace.symbols[static_cast<size_t>(a.next)];
  if (a.id == kNoToken || b.id == kNoToken) return;
  const auto rank = ranks_.find(static_cast<uint32_t>(a.id), static_cast<uint32_t>(b.id));
  if (!rank) return;
  workspace.queue.push_back(uint64_t{*rank} << 32 | static_cast<uint32_t>(left));
  std::push_heap(workspace.queue.begin(), workspace.queue.end(), std::greater<>());
}

void Bpe::merge_symbols(Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  auto& queue = workspace.queue;
  queue.clear();
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) push_pair(workspace, i);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const Merge& merge = merges_[queue.back() >> 32];
    const int32_t at = static_cast<int32_t>(queue.back() & 0xFFFFFFFFu);
    queue.pop_back();
    auto& left = symbols[static_cast<size_t>(at)];
    if (left.id != merge.left || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != merge.right) continue;
    left.id = merge.result;
    right.id = kNoToken;  // out of the chain; its queue entries are stale
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = at;
    push_pair(workspace, left.previous);
    push_pair(workspace, at);
  }
}

}  // namespace troika::model
