#include "troika/base/resident.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace troika {
namespace {

TEST(Resident, CountsPagesThatWereWritten) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t pages = 9000;  // more than are asked for at once
  void* mapping = mmap(nullptr, static_cast<size_t>(pages * page), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  madvise(mapping, static_cast<size_t>(pages * page), MADV_NOHUGEPAGE);
  auto* data = static_cast<std::byte*>(mapping);
  EXPECT_EQ(resident_bytes(data, pages * page), 0);
  for (const int64_t written : {int64_t{0}, int64_t{4096}, pages - 1}) {
    data[written * page + 1] = std::byte{1};
  }
  EXPECT_EQ(resident_bytes(data, pages * page), 3 * page);
  // Only what lies inside the range counts.
  EXPECT_EQ(resident_bytes(data + 100, 200), 200);
  EXPECT_EQ(resident_bytes(data + page - 10, 50), 10);
  munmap(mapping, static_cast<size_t>(pages * page));
  // Nothing is ever mapped at the lowest addresses.
  EXPECT_EQ(resident_bytes(reinterpret_cast<const std::byte*>(page), page), -1);
}

TEST(Resident, NothingIsNothing) {
  EXPECT_EQ(resident_bytes(nullptr, 4096), 0);
  const std::byte one{};
  EXPECT_EQ(resident_bytes(&one, 0), 0);
  EXPECT_EQ(resident_bytes(&one, -1), 0);
}

}  // namespace
}  // namespace troika
