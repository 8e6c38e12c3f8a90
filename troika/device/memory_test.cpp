#include "troika/device/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace troika::device {
namespace {

using Usage = std::vector<std::pair<std::string, int64_t>>;

TEST(SharedPool, GivesZeroedWholePages) {
  SharedPool pool;
  for (const Pages pages : {Pages::kSmall, Pages::kHuge}) {
    const auto block = pool.allocate("some", (int64_t{3} << 20) + 1, pages);
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % 4096, 0u);
    EXPECT_EQ(block->bytes(), (int64_t{3} << 20) + 4096);
    EXPECT_TRUE(std::all_of(block->data(), block->data() + block->bytes(),
                            [](std::byte b) { return b == std::byte{0}; }));
    block->data()[block->bytes() - 1] = std::byte{1};
  }
}

TEST(SharedPool, TellsWhoHoldsHowMuch) {
  SharedPool pool;
  auto cache = pool.allocate("cache", 1);
  {
    auto first = pool.allocate("activations", 4097);
    auto second = pool.allocate("activations", 4096);
    ASSERT_TRUE(cache && first && second);
    EXPECT_EQ(pool.usage(), (Usage{{"cache", 4096}, {"activations", 3 * 4096}}));
  }
  EXPECT_EQ(pool.usage(), (Usage{{"cache", 4096}, {"activations", 0}}));
  SharedBlock moved = std::move(*cache);
  EXPECT_EQ(cache->data(), nullptr);
  EXPECT_EQ(moved.bytes(), 4096);
  EXPECT_EQ(pool.usage()[0].second, 4096);
  moved = SharedBlock();
  EXPECT_EQ(pool.usage()[0].second, 0);
}

TEST(SharedPool, TellsWhatIsResident) {
  SharedPool pool;
  auto cache = pool.allocate("cache", 64 * 4096, Pages::kSmall);
  {
    auto other = pool.allocate("other", 4096, Pages::kSmall);
    ASSERT_TRUE(cache && other);
    cache->data()[5 * 4096] = std::byte{1};
    cache->data()[9 * 4096 + 7] = std::byte{1};
    other->data()[0] = std::byte{1};
    const std::vector<PoolShare> shares = pool.shares();
    ASSERT_EQ(shares.size(), 2u);
    EXPECT_EQ(shares[0].owner, "cache");
    EXPECT_EQ(shares[0].reserved, 64 * 4096);
    EXPECT_EQ(shares[0].resident, 2 * 4096);
    EXPECT_EQ(shares[1].resident, 4096);
  }
  EXPECT_EQ(pool.shares()[1].resident, 0);
  EXPECT_EQ(pool.shares()[1].reserved, 0);
}

TEST(SharedPool, BlocksAreFoundByAnyAddressInThem) {
  SharedPool pool;
  SharedPool other_pool;
  auto first = pool.allocate("one", 2 * 4096);
  auto second = other_pool.allocate("two", 4096);
  ASSERT_TRUE(first && second);
  const auto found = find_block(first->data() + 2 * 4096 - 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->data, first->data());
  EXPECT_EQ(found->bytes, 2 * 4096);
  EXPECT_EQ(find_block(first->data())->id, found->id);
  EXPECT_NE(find_block(second->data())->id, found->id);
  int outside = 0;
  EXPECT_FALSE(find_block(reinterpret_cast<const std::byte*>(&outside)).has_value());
  const uint64_t changes = block_changes();
  EXPECT_TRUE(is_live_block(found->id));
  *first = SharedBlock();
  EXPECT_FALSE(is_live_block(found->id));
  EXPECT_NE(block_changes(), changes);
}

TEST(SharedPool, RefusesSizesThatCannotBe) {
  SharedPool pool;
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max(), int64_t{1} << 62}) {
    const auto block = pool.allocate("much", bytes);
    ASSERT_FALSE(block.has_value()) << bytes;
    EXPECT_EQ(block.error().code, ErrorCode::kOutOfMemory);
    EXPECT_NE(block.error().message.find("much"), std::string::npos);
  }
  EXPECT_TRUE(pool.usage().empty());
}

}  // namespace
}  // namespace troika::device
