#include "troika/runtime/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troika::runtime {
namespace {

class KvCacheTest : public ::testing::Test {
 protected:
  KvCache make(int64_t context, int64_t n_blocks) {
    device::KvLayout layout;
    layout.n_layers = 2;
    layout.n_kv_heads = 3;
    layout.head_dim = 4;
    layout.n_blocks = n_blocks;
    auto cache = KvCache::create(layout, context, pool_);
    EXPECT_TRUE(cache.has_value());
    return std::move(*cache);
  }
  void grow(KvCache& cache, SequenceId sequence, int64_t tokens) {
    ASSERT_TRUE(cache.reserve(sequence, tokens).has_value());
    cache.commit(sequence, tokens);
  }
  // First element of a block's K in the last layer and head: a mark that copies must carry along.
  static float& mark(KvCache& cache, int32_t block) {
    const device::KvLayout& layout = cache.layout();
    std::byte* base = cache.data() + layout.head_offset(1, 2, 0);
    return reinterpret_cast<float*>(base)[block * layout.block_elements()];
  }

  device::SharedPool pool_;
};

TEST_F(KvCacheTest, GivesContiguousBlocksToALoneSequence) {
  KvCache cache = make(256, 8);
  const SequenceId s = cache.new_sequence();
  for (int i = 0; i < 100; ++i) grow(cache, s, 1);
  const auto table = cache.block_table(s);
  ASSERT_EQ(table.size(), 4u);
  for (size_t i = 1; i < table.size(); ++i) EXPECT_EQ(table[i], table[i - 1] + 1);
}

TEST_F(KvCacheTest, RefusesMoreThanTheContextWithBothCounts) {
  KvCache cache = make(64, 8);
  const SequenceId s = cache.new_sequence();
  grow(cache, s, 60);
  const Status status = cache.reserve(s, 5);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kContextFull);
  EXPECT_NE(status.error().message.find("65"), std::string::npos);
  EXPECT_NE(status.error().message.find("64"), std::string::npos);
  EXPECT_EQ(cache.length(s), 60);
  grow(cache, s, 4);
}

TEST_F(KvCacheTest, RefusesWhenBlocksRunOut) {
  KvCache cache = make(256, 2);
  const SequenceId a = cache.new_sequence();
  const SequenceId b = cache.new_sequence();
  grow(cache, a, 33);
  EXPECT_EQ(cache.reserve(b, 1).error().code, ErrorCode::kContextFull);
  cache.release(a);
  grow(cache, b, 64);
}

TEST_F(KvCacheTest, ForksShareFullBlocksAndCopyTheRest) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 70);
  mark(cache, cache.block_table(a)[2]) = 7.0f;
  const auto b = cache.fork(a, 70);
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(cache.block_table(*b)[0], cache.block_table(a)[0]);
  EXPECT_EQ(cache.block_table(*b)[1], cache.block_table(a)[1]);
  EXPECT_NE(cache.block_table(*b)[2], cache.block_table(a)[2]);
  EXPECT_EQ(mark(cache, cache.block_table(*b)[2]), 7.0f);
  EXPECT_EQ(cache.free_blocks(), 4);
}

TEST_F(KvCacheTest, WritingAfterATruncationDoesNotTouchASharedBlock) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 64);
  const auto b = cache.fork(a, 64);
  ASSERT_TRUE(b.has_value());
  cache.truncate(*b, 40);
  mark(cache, cache.block_table(a)[1]) = 3.0f;
  grow(cache, *b, 1);
  EXPECT_NE(cache.block_table(*b)[1], cache.block_table(a)[1]);
  EXPECT_EQ(mark(cache, cache.block_table(*b)[1]), 3.0f);
}

TEST_F(KvCacheTest, TellsWhichBlocksWereCopied) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 64);
  ASSERT_TRUE(cache.fork(a, 32).has_value());
  EXPECT_TRUE(cache.block_copies().list.empty());
  const auto b = cache.fork(a, 40);
  ASSERT_TRUE(b.has_value());
  ASSERT_EQ(cache.block_copies().list.size(), 1u);
  const device::KvBlockCopy copy = cache.block_copies().list[0];
  EXPECT_EQ(copy.from, cache.block_table(a)[1]);
  EXPECT_EQ(copy.to, cache.block_table(*b)[1]);
  EXPECT_GT(copy.number, cache.block_copies().settled);
  cache.settle_copies();
  EXPECT_TRUE(cache.block_copies().list.empty());
  EXPECT_EQ(cache.block_copies().settled, copy.number);
}

TEST_F(KvCacheTest, ForgetsCopiesThatNobodyHolds) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 40);
  for (int i = 0; i < 100; ++i) {
    const auto forked = cache.fork(a, 40);
    ASSERT_TRUE(forked.has_value());
    cache.release(*forked);
  }
  EXPECT_TRUE(cache.block_copies().list.empty());
}

TEST_F(KvCacheTest, KeepsACopyThatAnotherWasMadeFrom) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 40);
  const auto b = cache.fork(a, 40);
  const int32_t middle = cache.block_table(*b)[1];
  const auto c = cache.fork(*b, 40);
  cache.release(*b);
  ASSERT_EQ(cache.block_copies().list.size(), 2u);
  EXPECT_EQ(cache.block_copies().list[0].to, middle);
  EXPECT_EQ(cache.block_copies().list[1].from, middle);
  cache.release(*c);
  EXPECT_TRUE(cache.block_copies().list.empty());
}

// Each copied from the one before, which then ends: all but the last were only copied from.
TEST_F(KvCacheTest, BoundsTheCopiesBetweenTwoPasses) {
  KvCache cache = make(256, 8);
  SequenceId last = cache.new_sequence();
  grow(cache, last, 40);
  for (int i = 0; i < 16; ++i) {
    const auto next = cache.fork(last, 40);
    ASSERT_TRUE(next.has_value()) << i;
    cache.release(last);
    last = *next;
  }
  const auto refused = cache.fork(last, 40);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kContextFull);
  EXPECT_EQ(cache.free_blocks(), 6);
  cache.settle_copies();
  EXPECT_TRUE(cache.fork(last, 40).has_value());
}

TEST_F(KvCacheTest, ReleaseGivesBackAllBlocks) {
  KvCache cache = make(256, 8);
  const SequenceId a = cache.new_sequence();
  grow(cache, a, 100);
  const auto b = cache.fork(a, 50);
  cache.release(a);
  EXPECT_FALSE(cache.exists(a));
  EXPECT_EQ(cache.length(*b), 50);
  cache.release(*b);
  EXPECT_EQ(cache.free_blocks(), 8);
}

}  // namespace
}  // namespace troika::runtime
