// What devices see of a batch: one view of the whole pass, and one of each block of its rows.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/device/device.h"
#include "troika/plan/cut_graph.h"
#include "troika/runtime/batch.h"
#include "troika/runtime/kv_cache.h"

namespace troika::runtime {

// Reused from pass to pass. Its views are valid until the next fill().
class PassViews {
 public:
  // The sequences must have room for their items' tokens (KvCache::reserve) and must not change
  // while the views are used.
  void fill(const Batch& batch, const KvCache& cache);
  // The views of blocks. With `any_rows` there is one block, of as many rows as the batch has.
  void cut(const std::vector<plan::Block>& blocks, bool any_rows);

  const device::BatchView& whole() const { return whole_; }
  const device::BatchView& block(int32_t index) const {
    return index == plan::kWholePass ? whole_ : blocks_[static_cast<size_t>(index)];
  }
  int64_t rows() const { return whole_.n_rows; }
  int64_t logit_rows() const { return static_cast<int64_t>(logit_rows_.size()); }
  int32_t position(int64_t row) const { return positions_[static_cast<size_t>(row)]; }
  int32_t logit_row(int64_t i) const { return logit_rows_[static_cast<size_t>(i)]; }
  // Keys that the rows of a block see, added up.
  int64_t keys(int32_t block) const {
    return block == plan::kWholePass ? whole_keys_ : block_keys_[static_cast<size_t>(block)];
  }

 private:
  void cut_one(const plan::Block& block);

  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  std::vector<device::SequenceView> sequences_;
  device::BatchView whole_;
  int64_t whole_keys_ = 0;
  std::vector<device::BatchView> blocks_;
  std::vector<int64_t> block_keys_;
  // Behind the blocks' views: rows are counted from the block's first.
  std::vector<std::vector<device::SequenceView>> block_sequences_;
  std::vector<std::vector<int32_t>> block_logit_rows_;
};

}  // namespace troika::runtime
