#include "troika/device/opencl/batch_data.h"

#include <algorithm>

namespace troika::device::opencl {
namespace {

constexpr size_t kLeastCapacity = 4096;

int64_t blocks_of(const SequenceView& sequence) {
  if (sequence.block_table == nullptr) return 0;
  return (sequence.first_position + sequence.n_rows + kKvBlockTokens - 1) / kKvBlockTokens;
}

}  // namespace

PackedBatch pack_batch(const BatchView& batch) {
  PackedBatch packed;
  const int64_t rows = batch.n_rows;
  const auto wanted = static_cast<int64_t>(batch.logit_rows.size());
  BatchPlaces& places = packed.places;
  places.tokens = 0;
  places.keys = rows;
  places.rows = 2 * rows;
  places.wanted = 4 * rows;
  int64_t table = places.wanted + wanted;
  std::vector<int32_t>& data = packed.data;
  data.resize(static_cast<size_t>(table));
  std::copy(batch.tokens.begin(), batch.tokens.end(), data.begin());
  std::copy(batch.logit_rows.begin(), batch.logit_rows.end(), data.begin() + places.wanted);
  for (const SequenceView& sequence : batch.sequences) {
    const int64_t blocks = blocks_of(sequence);
    if (blocks == 0) continue;
    data.insert(data.end(), sequence.block_table, sequence.block_table + blocks);
    for (int64_t i = 0; i < sequence.n_rows; ++i) {
      const int64_t row = sequence.first_row + i;
      const int64_t position = batch.positions[static_cast<size_t>(row)];
      const int64_t block = sequence.block_table[position / kKvBlockTokens];
      data[static_cast<size_t>(places.keys + row)] =
          static_cast<int32_t>(block * kKvBlockTokens + position % kKvBlockTokens);
      data[static_cast<size_t>(places.rows + 2 * row)] = static_cast<int32_t>(table);
      data[static_cast<size_t>(places.rows + 2 * row + 1)] = static_cast<int32_t>(position);
    }
    table += blocks;
  }
  return packed;
}

Status BatchData::put(const BatchView& batch) {
  PackedBatch packed = pack_batch(batch);
  if (packed_ != nullptr && packed_->data == packed.data) {
    // The same numbers may stand for other places.
    const BatchPlaces& old = packed_->places;
    if (old.keys == packed.places.keys && old.wanted == packed.places.wanted) return {};
  }
  packed_ = std::make_shared<const PackedBatch>(std::move(packed));
  const std::vector<int32_t>& data = packed_->data;
  if (data.size() > capacity_) {
    const size_t capacity = std::max({data.size(), 2 * capacity_, kLeastCapacity});
    ASSIGN_OR_RETURN(memory_, arena_.take(static_cast<int64_t>(capacity * sizeof(int32_t))));
    capacity_ = capacity;
    ++generation_;
  }
  return check_call("clEnqueueWriteBuffer",
                    api().EnqueueWriteBuffer(
                        queue_, memory_.get(), CL_FALSE, static_cast<size_t>(memory_.begin()),
                        data.size() * sizeof(int32_t), data.data(), 0, nullptr, nullptr));
}

}  // namespace troika::device::opencl
