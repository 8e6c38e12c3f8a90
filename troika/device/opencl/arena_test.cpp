// Pieces of few buffers: where they lie, and that what was given back is given again.
#include "troika/device/opencl/arena.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "troika/device/opencl/device_session.h"

namespace troika::device::opencl {
namespace {

constexpr int64_t kSlabBytes = int64_t{16} << 20;

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session_ = open_session({});
    if (!session_) GTEST_SKIP() << session_.error().message;
    arena_.emplace(session_->context.get(), session_->facts.largest_buffer);
  }
  Piece take(int64_t bytes) {
    auto piece = arena_->take(bytes);
    EXPECT_TRUE(piece.has_value());
    return piece ? std::move(*piece) : Piece();
  }

  Result<Session> session_ = make_error(ErrorCode::kInternal, "not opened");
  std::optional<Arena> arena_;
};

TEST_F(ArenaTest, PiecesLieBesideEachOtherInOneBuffer) {
  const Piece first = take(1000);
  const Piece second = take(1);
  const Piece third = take(kPieceAlignment);
  EXPECT_NE(first.get(), nullptr);
  EXPECT_EQ(second.get(), first.get());
  EXPECT_EQ(third.get(), first.get());
  EXPECT_EQ(first.begin(), 0);
  EXPECT_EQ(second.begin(), 1024);
  EXPECT_EQ(third.begin(), 1024 + kPieceAlignment);
  EXPECT_EQ(arena_->bytes(), kSlabBytes);
}

TEST_F(ArenaTest, WhatIsGivenBackIsGivenAgain) {
  const Piece kept = take(kPieceAlignment);
  Piece first = take(kPieceAlignment);
  Piece second = take(kPieceAlignment);
  Piece third = take(kSlabBytes - 3 * kPieceAlignment);
  const int64_t begin = first.begin();
  // In an order in which each of them finds another free neighbour.
  first = Piece();
  third = Piece();
  second = Piece();
  const Piece all = take(kSlabBytes - kPieceAlignment);
  EXPECT_EQ(all.get(), kept.get());
  EXPECT_EQ(all.begin(), begin);
  EXPECT_EQ(arena_->bytes(), kSlabBytes);
}

TEST_F(ArenaTest, WhatDoesNotFitGetsAnotherBuffer) {
  const Piece small = take(1);
  {
    const Piece large = take(2 * kSlabBytes);
    EXPECT_NE(large.get(), small.get());
    EXPECT_EQ(large.begin(), 0);
    EXPECT_EQ(arena_->bytes(), 3 * kSlabBytes);
  }
  EXPECT_EQ(arena_->bytes(), kSlabBytes) << "a buffer without pieces goes back";
}

TEST_F(ArenaTest, PiecesOutliveIt) {
  Piece piece = take(1);
  arena_.reset();
  EXPECT_NE(piece.get(), nullptr);
  Piece moved = std::move(piece);
  EXPECT_NE(moved.get(), nullptr);
}

TEST(Pieces, AreNothingOrAWholeBuffer) {
  EXPECT_EQ(Piece().get(), nullptr);
  const auto session = open_session({});
  if (!session) GTEST_SKIP() << session.error().message;
  cl_int code = CL_SUCCESS;
  BufferHandle buffer(
      api().CreateBuffer(session->context.get(), CL_MEM_READ_WRITE, 64, nullptr, &code));
  ASSERT_EQ(code, CL_SUCCESS);
  const cl_mem handle = buffer.get();
  const Piece piece(std::move(buffer));
  EXPECT_EQ(piece.get(), handle);
  EXPECT_EQ(piece.begin(), 0);
}

}  // namespace
}  // namespace troika::device::opencl
