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
  // copy of a block that is not full, or when too many were copied since the last pass.
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
  // Copies of blocks that hold something, since settle_copies(); for devices with memory of their
  // own.
  device::KvCopies block_copies() const { return {copies_, settled_}; }
  // A pass has succeeded: its devices have made up for all of them.
  void settle_copies();

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
  // A copy in place of a reference to `block`; kContextFull.
  Result<int32_t> own_copy(int32_t block);
  void copy_block(int32_t from, int32_t to);
  void forget_dead_copies();

  device::KvLayout layout_;
  int64_t context_ = 0;
  device::SharedBlock memory_;
  std::vector<int32_t> references_;  // by block
  std::vector<Sequence> sequences_;
  std::vector<device::KvBlockCopy> copies_;
  uint64_t last_copy_ = 0;
  uint64_t settled_ = 0;
};

}  // namespace troika::runtime
