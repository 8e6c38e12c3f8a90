#include "troika/model/weight_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "troika/model/quantize.h"

namespace troika::model {
namespace {

// Small enough to be still in the cache when it is checked after reading.
constexpr int64_t kChunkBytes = 512 * 1024;

// Neighbouring rows of one weight, or a part of one very long row.
struct Chunk {
  size_t weight = 0;
  int64_t row = 0;
  int64_t first_col = 0;
  int64_t rows = 0;  // 1 for a part of a row
  int64_t cols = 0;
  uint64_t file_offset = 0;
  std::byte* to = nullptr;

  int64_t bytes(const Weight& w) const { return rows * row_bytes(w.type, cols); }
};

void add_chunks(const Weight& w, size_t index, uint64_t file_offset, std::byte* data,
                std::vector<Chunk>& out) {
  const TypeTraits& t = traits(w.type);
  const int64_t row_bytes = w.row_bytes();
  if (row_bytes <= kChunkBytes) {
    const int64_t step = kChunkBytes / row_bytes;
    for (int64_t row = 0; row < w.rows; row += step) {
      const int64_t offset = row * row_bytes;
      out.push_back({index, row, 0, std::min(step, w.rows - row), w.cols,
                     file_offset + static_cast<uint64_t>(offset), data + offset});
    }
    return;
  }
  const int64_t step = kChunkBytes / t.block_bytes * t.block_weights;
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t col = 0; col < w.cols; col += step) {
      const int64_t offset = row * row_bytes + model::row_bytes(w.type, col);
      out.push_back({index, row, col, 1, std::min(step, w.cols - col),
                     file_offset + static_cast<uint64_t>(offset), data + offset});
    }
  }
}

// Workers take chunks in order; the error of the earliest bad chunk is the one that is reported.
class ChunkReader {
 public:
  ChunkReader(const ByteSource& source, const std::vector<Weight>& weights,
              const std::vector<Chunk>& chunks)
      : source_(source), weights_(weights), chunks_(chunks) {}

  // Reads one chunk; false when none is left or the work was stopped.
  bool step() {
    const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= chunks_.size() || stopped_.load(std::memory_order_relaxed)) return false;
    Status status = read(chunks_[i]);
    if (!status) {
      const std::lock_guard lock(mutex_);
      if (!error_ || i < error_index_) {
        error_ = std::move(status).error();
        error_index_ = i;
      }
      stop();
      return false;
    }
    return true;
  }

  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  // Once all workers have ended.
  const std::optional<Error>& error() const { return error_; }

 private:
  Status read(const Chunk& chunk) {
    const Weight& w = weights_[chunk.weight];
    const int64_t bytes = chunk.bytes(w);
    RETURN_IF_ERROR(
        source_.read(chunk.file_offset, std::span(chunk.to, static_cast<size_t>(bytes))));
    const int64_t stride = row_bytes(w.type, chunk.cols);
    for (int64_t i = 0; i < chunk.rows; ++i) {
      if (!row_is_finite(w.type, chunk.to + i * stride, chunk.cols)) {
        return make_error(ErrorCode::kInvalidData,
                          "tensor '{}' has a NaN or an infinity in row {}; the file is damaged or "
                          "was converted wrongly",
                          printable(w.name), chunk.row + i);
      }
    }
    done_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
    return {};
  }

  const ByteSource& source_;
  const std::vector<Weight>& weights_;
  const std::vector<Chunk>& chunks_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;
  std::optional<Error> error_;
  size_t error_index_ = 0;
};

// True if the work came to its end, with or without an error; false if `progress` stopped it.
bool run(ChunkReader& reader, int threads, uint64_t total,
         const std::function<bool(uint64_t, uint64_t)>& progress) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    try {
      others.emplace_back([&reader] {
        while (reader.step()) {
        }
      });
    } catch (const std::system_error&) {
      break;  // fewer threads read, slower
    }
  }
  bool cancelled = false;
  while (reader.step()) {
    if (progress && !progress(reader.done(), total)) {
      cancelled = true;
      reader.stop();
    }
  }
  for (std::thread& other : others) other.join();
  if (!cancelled && !reader.error() && progress) cancelled = !progress(reader.done(), total);
  return !cancelled;
}

uint64_t aligned(uint64_t n) {
  return (n + WeightPool::kAlignment - 1) / WeightPool::kAlignment * WeightPool::kAlignment;
}

}  // namespace

WeightPool WeightPool::outline(const std::vector<GgufTensor>& tensors) {
  WeightPool pool;
  pool.weights_.reserve(tensors.size());
  for (const GgufTensor& t : tensors) {
    const auto cols = static_cast<int64_t>(t.dims[0]);
    const auto rows = static_cast<int64_t>(t.dims.size() > 1 ? t.dims[1] : 1);
    pool.weights_.push_back({t.name, static_cast<TensorType>(t.type_id), rows, cols, nullptr});
  }
  for (size_t i = 0; i < pool.weights_.size(); ++i) {
    pool.by_name_.emplace(pool.weights_[i].name, i);
  }
  return pool;
}

Result<WeightPool> WeightPool::read(const ByteSource& source,
                                    const std::vector<GgufTensor>& tensors, int threads,
                                    const std::function<bool(uint64_t, uint64_t)>& progress) {
  WeightPool pool;
  uint64_t region_bytes = 0;
  uint64_t total = 0;
  for (const GgufTensor& t : tensors) {
    region_bytes += aligned(t.bytes);
    total += t.bytes;
  }
  ASSIGN_OR_RETURN(pool.region_, PageRegion::allocate(region_bytes));

  std::vector<Chunk> chunks;
  uint64_t offset = 0;
  pool.weights_.reserve(tensors.size());
  for (const GgufTensor& t : tensors) {
    std::byte* data = pool.region_.data() + offset;
    const auto cols = static_cast<int64_t>(t.dims[0]);
    const auto rows = static_cast<int64_t>(t.dims.size() > 1 ? t.dims[1] : 1);
    pool.weights_.push_back({t.name, static_cast<TensorType>(t.type_id), rows, cols, data});
    add_chunks(pool.weights_.back(), pool.weights_.size() - 1, t.file_offset, data, chunks);
    offset += aligned(t.bytes);
  }
  for (size_t i = 0; i < pool.weights_.size(); ++i) {
    pool.by_name_.emplace(pool.weights_[i].name, i);
  }

  ChunkReader reader(source, pool.weights_, chunks);
  const int useful = static_cast<int>(std::min<size_t>(chunks.size(), 64));
  if (!run(reader, std::min(threads, useful), total, progress)) {
    return make_error(ErrorCode::kCancelled, "loading was stopped");
  }
  if (reader.error()) return tl::unexpected<Error>(*reader.error());
  return pool;
}

const Weight* WeightPool::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &weights_[at->second];
}

}  // namespace troika::model
