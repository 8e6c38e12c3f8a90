// The KV cache: blocks of keys and values in shared memory, handed out to sequences. Sequences that
// were forked share the blocks of their common beginning.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/kv_layout.h"
#include "troika/device/memory.h"
#include "troika/runtime/batch.h"

namespace troika::runtime {

// Not for use while a forward pass runs. A block is written only by the one sequence that holds it;
// a shared block is copied before it is written.
class KvCache {
 public:
  // `layout.n_blocks` blocks; a sequence may hold `context` tokens.
  static Result<KvCache> create(const device::KvLayout& layout, int64_t context,
                                device::SharedPool& pool);

  SequenceId new_sequence();
  // A new sequence with the first `tokens` of `from`; kContextFull when no block is left for the
  // copy of a block that is not full.
  Result<SequenceId> fork(SequenceId from, int64_t tokens);
  void release(SequenceId sequence);
  // Forgets all but the first `tokens` (no more than length()).
  void truncate(SequenceId sequence, int64_t tokens);

  bool exists(SequenceId sequence) const;
  int64_t length(SequenceId sequence) const;

  // Makes room for `more` tokens after length(). kContextFull, with counts, if the sequence's
  // context or the cache has no room; then nothing has changed but unused room.
  Status reserve(SequenceId sequence, int64_t more);
  // The tokens written by a pass that has succeeded are part of the sequence now.
  void commit(SequenceId sequence, int64_t more);

  // Block numbers in order of position; valid until the sequence changes.
  std::span<const int32_t> block_table(SequenceId sequence) const;

  const device::KvLayout& layout() const { return layout_; }
  std::byte* data() const { return memory_.data(); }
  int64_t context() const { return context_; }
  int64_t free_blocks() const;
  // Every copy of a block since the beginning, for devices with memory of their own.
  std::span<const device::KvBlockCopy> block_copies() const { return copies_; }

 private:
  struct Sequence {
    bool used = false;
    int64_t length = 0;
    std::vector<int32_t> blocks;
  };

  KvCache() = default;
  Sequence& at(SequenceId sequence) { return sequences_[static_cast<size_t>(sequence)]; }
  const Sequence& at(SequenceId sequence) const {
    return sequences_[static_cast<size_t>(sequence)];
  }
  // A free block, the one after `previous` if possible, so that windows stay contiguous; -1: none.
  int32_t take_block(int32_t previous);
  void drop_block(int32_t block);
  void copy_block(int32_t from, int32_t to);

  device::KvLayout layout_;
  int64_t context_ = 0;
  device::SharedBlock memory_;
  std::vector<int32_t> references_;  // by block
  std::vector<Sequence> sequences_;
  std::vector<device::KvBlockCopy> copies_;
};

}  // namespace troika::runtime
