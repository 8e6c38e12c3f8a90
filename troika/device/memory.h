// Page-aligned shared memory that devices compute in, and who holds how much of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troika/base/result.h"

namespace troika::device {

class SharedPool;

// kHuge saves TLB misses where all of a block is used; kSmall memory where little of it may be.
enum class Pages { kSmall, kHuge };

// A page-aligned range of the pool, zero at first; given back when destroyed. Movable, one owner.
class SharedBlock {
 public:
  SharedBlock() = default;
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&& other) noexcept;
  ~SharedBlock();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  friend class SharedPool;
  SharedPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  std::string owner_;
};

// A live block as found by an address in it.
struct BlockRange {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  uint64_t id = 0;  // of this block and no other, ever
};

// The block of any pool that holds `address`, for devices that keep memory of their own for it;
// nullopt if there is none. Any thread.
std::optional<BlockRange> find_block(const std::byte* address);
bool is_live_block(uint64_t id);
// Changes whenever a block comes or goes.
uint64_t block_changes();

// What one owner holds of a pool.
struct PoolShare {
  std::string owner;
  int64_t reserved = 0;  // bytes of address space
  int64_t resident = 0;  // bytes of it that the system holds; -1 if it does not tell
};

// Any thread may allocate. Must outlive its blocks. Memory is taken from the system when allocated,
// and its pages when first written.
class SharedPool {
 public:
  SharedPool() = default;
  SharedPool(const SharedPool&) = delete;
  SharedPool& operator=(const SharedPool&) = delete;

  // `owner` is a plain word for reports: "kv cache". kOutOfMemory with the bytes asked for.
  Result<SharedBlock> allocate(std::string owner, int64_t bytes, Pages pages = Pages::kHuge);

  // Bytes by owner, in order of first allocation.
  std::vector<std::pair<std::string, int64_t>> usage() const;
  // The same with what is resident of it: looks at every page.
  std::vector<PoolShare> shares() const;

 private:
  friend class SharedBlock;
  struct Range {
    std::string owner;
    const std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  void release(const std::string& owner, std::byte* data, int64_t bytes);

  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, int64_t>> usage_;
  std::vector<Range> ranges_;
};

}  // namespace troika::device
