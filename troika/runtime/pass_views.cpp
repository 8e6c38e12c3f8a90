#include "troika/runtime/pass_views.h"

#include <algorithm>

namespace troika::runtime {
namespace {

int64_t count_keys(const device::BatchView& view) {
  int64_t keys = 0;
  for (const int32_t position : view.positions) keys += position + 1;
  return keys;
}

}  // namespace

void PassViews::fill(const Batch& batch, const KvCache& cache) {
  tokens_.clear();
  positions_.clear();
  logit_rows_.clear();
  sequences_.clear();
  for (const BatchItem& item : batch.items) {
    const auto first_row = static_cast<int64_t>(tokens_.size());
    const auto n_rows = static_cast<int64_t>(item.tokens.size());
    const int64_t first_position = cache.length(item.sequence);
    sequences_.push_back(
        {first_row, n_rows, first_position, cache.block_table(item.sequence).data()});
    for (int64_t i = 0; i < n_rows; ++i) {
      tokens_.push_back(item.tokens[static_cast<size_t>(i)]);
      positions_.push_back(static_cast<int32_t>(first_position + i));
      const bool wanted =
          item.logits == WantLogits::kAll || (item.logits == WantLogits::kLast && i == n_rows - 1);
      if (wanted) logit_rows_.push_back(static_cast<int32_t>(first_row + i));
    }
  }
  whole_.n_rows = static_cast<int64_t>(tokens_.size());
  whole_.tokens = tokens_;
  whole_.positions = positions_;
  whole_.sequences = sequences_;
  whole_.logit_rows = logit_rows_;
  whole_.first_logit_row = 0;
  whole_.kv = cache.data();
  whole_.kv_layout = cache.layout();
  whole_.kv_copies = cache.block_copies();
  whole_keys_ = count_keys(whole_);
}

void PassViews::cut(const std::vector<plan::Block>& blocks, bool any_rows) {
  blocks_.clear();
  block_keys_.clear();
  block_sequences_.resize(std::max(block_sequences_.size(), blocks.size()));
  block_logit_rows_.resize(std::max(block_logit_rows_.size(), blocks.size()));
  if (any_rows) {
    blocks_.push_back(whole_);
    block_keys_.push_back(whole_keys_);
    return;
  }
  for (const plan::Block& block : blocks) cut_one(block);
}

void PassViews::cut_one(const plan::Block& block) {
  const int64_t end = block.begin + block.rows;
  auto& sequences = block_sequences_[blocks_.size()];
  sequences.clear();
  for (const device::SequenceView& whole : sequences_) {
    const int64_t first = std::max(whole.first_row, block.begin);
    const int64_t last = std::min(whole.first_row + whole.n_rows, end);
    if (first >= last) continue;
    device::SequenceView part = whole;
    part.first_row = first - block.begin;
    part.n_rows = last - first;
    part.first_position = whole.first_position + (first - whole.first_row);
    sequences.push_back(part);
  }
  auto& wanted = block_logit_rows_[blocks_.size()];
  wanted.clear();
  const auto begin = std::lower_bound(logit_rows_.begin(), logit_rows_.end(), block.begin);
  for (auto row = begin; row != logit_rows_.end() && *row < end; ++row) {
    wanted.push_back(static_cast<int32_t>(*row - block.begin));
  }
  device::BatchView view = whole_;
  view.n_rows = block.rows;
  view.tokens =
      whole_.tokens.subspan(static_cast<size_t>(block.begin), static_cast<size_t>(block.rows));
  view.positions =
      whole_.positions.subspan(static_cast<size_t>(block.begin), static_cast<size_t>(block.rows));
  view.sequences = sequences;
  view.logit_rows = wanted;
  view.first_logit_row = begin - logit_rows_.begin();
  blocks_.push_back(view);
  block_keys_.push_back(count_keys(view));
}

}  // namespace troika::runtime
