#include "troika/device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <utility>

#include "troika/base/resident.h"

namespace troika::device {
namespace {

constexpr int64_t kPageBytes = 4096;
// Smaller blocks cannot hold a huge page.
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

// All live blocks of the program, by address.
struct BlockIndex {
  std::mutex mutex;
  std::map<const std::byte*, BlockRange> blocks;
  std::atomic<uint64_t> changes{0};
};

BlockIndex& block_index() {
  static BlockIndex index;
  return index;
}

void enter_block(std::byte* data, int64_t bytes) {
  BlockIndex& index = block_index();
  const std::lock_guard lock(index.mutex);
  index.blocks[data] = {data, bytes, ++index.changes};
}

void remove_block(const std::byte* data) {
  BlockIndex& index = block_index();
  const std::lock_guard lock(index.mutex);
  ++index.changes;
  index.blocks.erase(data);
}

}  // namespace

std::optional<BlockRange> find_block(const std::byte* address) {
  BlockIndex& index = block_index();
  const std::lock_guard lock(index.mutex);
  auto after = index.blocks.upper_bound(address);
  if (after == index.blocks.begin()) return std::nullopt;
  const BlockRange& range = (--after)->second;
  if (address >= range.data + range.bytes) return std::nullopt;
  return range;
}

bool is_live_block(uint64_t id) {
  BlockIndex& index = block_index();
  const std::lock_guard lock(index.mutex);
  return std::any_of(index.blocks.begin(), index.blocks.end(),
                     [id](const auto& entry) { return entry.second.id == id; });
}

uint64_t block_changes() { return block_index().changes.load(); }

SharedBlock::SharedBlock(SharedBlock&& other) noexcept { *this = std::move(other); }

SharedBlock& SharedBlock::operator=(SharedBlock&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(owner_, other.owner_);
  return *this;
}

SharedBlock::~SharedBlock() {
  if (data_ != nullptr) pool_->release(owner_, data_, bytes_);
}

Result<SharedBlock> SharedPool::allocate(std::string owner, int64_t bytes, Pages pages) {
  if (bytes <= 0 || bytes > std::numeric_limits<int64_t>::max() - kPageBytes) {
    return make_error(ErrorCode::kOutOfMemory, "cannot allocate {} bytes for {}", bytes, owner);
  }
  const int64_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* data = mmap(nullptr, static_cast<size_t>(rounded), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return make_error(ErrorCode::kOutOfMemory,
                      "no memory for {} ({:.1f} MB): use a smaller context or model", owner,
                      static_cast<double>(bytes) / 1e6);
  }
  const bool huge = pages == Pages::kHuge && rounded >= kHugePageBytes;
  madvise(data, static_cast<size_t>(rounded), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);

  enter_block(static_cast<std::byte*>(data), rounded);
  const std::lock_guard lock(mutex_);
  const auto row = std::find_if(usage_.begin(), usage_.end(),
                                [&](const auto& entry) { return entry.first == owner; });
  if (row == usage_.end()) {
    usage_.emplace_back(owner, rounded);
  } else {
    row->second += rounded;
  }
  ranges_.push_back({owner, static_cast<const std::byte*>(data), rounded});
  SharedBlock block;
  block.pool_ = this;
  block.data_ = static_cast<std::byte*>(data);
  block.bytes_ = rounded;
  block.owner_ = std::move(owner);
  return block;
}

void SharedPool::release(const std::string& owner, std::byte* data, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(ranges_, [&](const Range& range) { return range.data == data; });
  remove_block(data);
  munmap(data, static_cast<size_t>(bytes));
  for (auto& [name, held] : usage_) {
    if (name == owner) held -= bytes;
  }
}

std::vector<std::pair<std::string, int64_t>> SharedPool::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

std::vector<PoolShare> SharedPool::shares() const {
  const std::lock_guard lock(mutex_);
  std::vector<PoolShare> shares;
  for (const auto& [owner, bytes] : usage_) {
    PoolShare share{owner, bytes, 0};
    for (const Range& range : ranges_) {
      if (range.owner != owner || share.resident < 0) continue;
      const int64_t resident = resident_bytes(range.data, range.bytes);
      share.resident = resident < 0 ? -1 : share.resident + resident;
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace troika::device
