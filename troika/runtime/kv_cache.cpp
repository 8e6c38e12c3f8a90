#include "troika/runtime/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace troika::runtime {
namespace {

using device::kKvBlockTokens;

int64_t blocks_for(int64_t tokens) { return (tokens + kKvBlockTokens - 1) / kKvBlockTokens; }

}  // namespace

Result<KvCache> KvCache::create(const device::KvLayout& layout, int64_t context,
                                device::SharedPool& pool) {
  KvCache cache;
  cache.layout_ = layout;
  cache.context_ = context;
  // Small pages: heads lie far apart and a short answer touches little of each.
  ASSIGN_OR_RETURN(cache.memory_,
                   pool.allocate("kv cache", layout.total_bytes(), device::Pages::kSmall));
  cache.references_.resize(static_cast<size_t>(layout.n_blocks));
  return cache;
}

SequenceId KvCache::new_sequence() {
  auto free = std::find_if(sequences_.begin(), sequences_.end(),
                           [](const Sequence& sequence) { return !sequence.used; });
  if (free == sequences_.end()) free = sequences_.emplace(sequences_.end());
  free->used = true;
  free->length = 0;
  return static_cast<SequenceId>(free - sequences_.begin());
}

bool KvCache::exists(SequenceId sequence) const {
  return sequence >= 0 && static_cast<size_t>(sequence) < sequences_.size() && at(sequence).used;
}

int64_t KvCache::length(SequenceId sequence) const { return at(sequence).length; }

std::span<const int32_t> KvCache::block_table(SequenceId sequence) const {
  return at(sequence).blocks;
}

int64_t KvCache::free_blocks() const {
  return std::count(references_.begin(), references_.end(), 0);
}

int32_t KvCache::take_block(int32_t previous) {
  const auto is_free = [&](int64_t block) {
    return block < layout_.n_blocks && references_[static_cast<size_t>(block)] == 0;
  };
  int64_t chosen = -1;
  if (previous >= 0 && is_free(previous + 1)) {
    chosen = previous + 1;
  } else {
    // The longest free run, so that what follows can be contiguous.
    int64_t longest = 0;
    for (int64_t begin = 0; begin < layout_.n_blocks;) {
      int64_t end = begin;
      while (is_free(end)) ++end;
      if (end - begin > longest) {
        longest = end - begin;
        chosen = begin;
      }
      begin = end + 1;
    }
  }
  if (chosen >= 0) references_[static_cast<size_t>(chosen)] = 1;
  return static_cast<int32_t>(chosen);
}

void KvCache::drop_block(int32_t block) {
  assert(references_[static_cast<size_t>(block)] > 0);
  --references_[static_cast<size_t>(block)];
  if (references_[static_cast<size_t>(block)] == 0 && !copies_.empty()) forget_dead_copies();
}

// Seen from the last copy to the first, those into blocks that nobody holds or reads afterwards.
void KvCache::forget_dead_copies() {
  std::vector<bool> needed(references_.size());
  for (size_t i = 0; i < references_.size(); ++i) needed[i] = references_[i] > 0;
  const auto is_dead = [&](const device::KvBlockCopy& copy) {
    if (!needed[static_cast<size_t>(copy.to)]) return true;
    needed[static_cast<size_t>(copy.to)] = false;  // what it held before was overwritten
    needed[static_cast<size_t>(copy.from)] = true;
    return false;
  };
  const auto kept = std::remove_if(copies_.rbegin(), copies_.rend(), is_dead);
  copies_.erase(copies_.begin(), kept.base());
}

void KvCache::settle_copies() {
  copies_.clear();
  settled_ = last_copy_;
}

Result<int32_t> KvCache::own_copy(int32_t block) {
  // As many as can hold something, and as many again for those that only others were copied from.
  const auto most = static_cast<size_t>(2 * layout_.n_blocks);
  if (copies_.size() >= most) {
    return make_error(ErrorCode::kContextFull,
                      "{} blocks of the KV cache were copied since the last pass: compute one "
                      "before more sequences share a beginning",
                      copies_.size());
  }
  const int32_t copy = take_block(block);
  if (copy < 0) {
    return make_error(ErrorCode::kContextFull, "the KV cache has no free block of {} tokens left",
                      kKvBlockTokens);
  }
  copy_block(block, copy);
  drop_block(block);
  return copy;
}

void KvCache::copy_block(int32_t from, int32_t to) {
  copies_.push_back({from, to, ++last_copy_});
  const int64_t bytes = layout_.block_elements() * device::kv_type_bytes(layout_.type);
  for (int64_t layer = 0; layer < layout_.n_layers; ++layer) {
    for (int64_t head = 0; head < layout_.n_kv_heads; ++head) {
      for (const int which : {0, 1}) {
        std::byte* base = memory_.data() + layout_.head_offset(layer, head, which);
        std::memcpy(base + to * bytes, base + from * bytes, static_cast<size_t>(bytes));
      }
    }
  }
}

Result<SequenceId> KvCache::fork(SequenceId from, int64_t tokens) {
  assert(tokens <= length(from));
  const SequenceId forked = new_sequence();
  at(forked).blocks.assign(at(from).blocks.begin(), at(from).blocks.begin() + blocks_for(tokens));
  for (const int32_t block : at(forked).blocks) ++references_[static_cast<size_t>(block)];
  at(forked).length = tokens;
  // The copy of a block that is not full is made now, not when one of the two writes to it: running
  // out of blocks is then the fork's error, not that of a sequence in the middle of an answer.
  if (tokens % kKvBlockTokens != 0) {
    int32_t& last = at(forked).blocks.back();
    const auto copy = own_copy(last);
    if (!copy) {
      release(forked);
      return tl::unexpected<Error>(copy.error());
    }
    last = *copy;
  }
  return forked;
}

void KvCache::release(SequenceId sequence) {
  truncate(sequence, 0);
  at(sequence).used = false;
}

void KvCache::truncate(SequenceId sequence, int64_t tokens) {
  Sequence& s = at(sequence);
  assert(tokens <= s.length);
  while (static_cast<int64_t>(s.blocks.size()) > blocks_for(tokens)) {
    drop_block(s.blocks.back());
    s.blocks.pop_back();
  }
  s.length = tokens;
}

Status KvCache::reserve(SequenceId sequence, int64_t more) {
  Sequence& s = at(sequence);
  const int64_t wanted = s.length + more;
  if (wanted > context_) {
    return make_error(ErrorCode::kContextFull,
                      "{} tokens do not fit a context of {}: shorten the prompt or raise -c",
                      wanted, context_);
  }
  // After a truncation the last block may be half kept and shared: it is about to be written.
  if (s.length % kKvBlockTokens != 0) {
    int32_t& last = s.blocks[static_cast<size_t>(s.length / kKvBlockTokens)];
    if (references_[static_cast<size_t>(last)] > 1) {
      ASSIGN_OR_RETURN(last, own_copy(last));
    }
  }
  while (static_cast<int64_t>(s.blocks.size()) < blocks_for(wanted)) {
    const int32_t block = take_block(s.blocks.empty() ? -1 : s.blocks.back());
    if (block < 0) {
      return make_error(ErrorCode::kContextFull,
                        "{} tokens do not fit: the KV cache's {} blocks of {} tokens are in use",
                        wanted, layout_.n_blocks, kKvBlockTokens);
    }
    s.blocks.push_back(block);
  }
  return {};
}

void KvCache::commit(SequenceId sequence, int64_t more) { at(sequence).length += more; }

}  // namespace troika::runtime
