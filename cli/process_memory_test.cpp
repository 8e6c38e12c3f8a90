#include "cli/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace troika::cli {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKib = 1024;
constexpr int64_t kStack = 8192 * kKib;

// A program, its heap, a thread's stack over its guard page, generated code, a library.
const std::string& sample() {
  static const std::string text =
      "00400000-00410000 r-xp 00000000 08:01 1234                               /bin/a name: x\n"
      "Size:                 64 kB\n"
      "Rss:                  40 kB\n"
      "VmFlags: rd ex mr mw me dw \n"
      "01000000-01100000 rw-p 00000000 00:00 0                                  [heap]\n"
      "Rss:                 512 kB\n"
      "7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
      "Rss:                   0 kB\n"
      "7f0000001000-7f0001001000 rw-p 00000000 00:00 0 \n"
      "Rss:               12000 kB\n"
      "7f0001001000-7f0001002000 rwxp 00000000 00:00 0 \n"
      "Rss:                   4 kB\n"
      "7f0001002000-7f0001004000 rw-p 00000000 00:00 0                  [anon:name]\n"
      "Rss:                   8 kB\n"
      "7f0002000000-7f0002002000 rw-p 00000000 08:01 77                         /lib/b.so\n"
      "Rss:                   8 kB\n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "Rss:                  20 kB\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
      "Rss:                   0 kB\n";
  return text;
}

TEST(ProcessMemory, ReadsTheMap) {
  const auto mappings = parse_smaps(sample());
  ASSERT_TRUE(mappings) << mappings.error().message;
  ASSERT_EQ(mappings->size(), 9u);
  EXPECT_EQ((*mappings)[0].begin, 0x400000u);
  EXPECT_EQ((*mappings)[0].end, 0x410000u);
  EXPECT_EQ((*mappings)[0].permissions, "r-xp");
  EXPECT_EQ((*mappings)[0].name, "/bin/a name: x");
  EXPECT_EQ((*mappings)[0].resident, 40 * kKib);
  EXPECT_EQ((*mappings)[2].name, "");
  EXPECT_EQ((*mappings)[8].name, "[vsyscall]");
}

TEST(ProcessMemory, SumsByWhatTheRangesAreFor) {
  const auto mappings = parse_smaps(sample());
  ASSERT_TRUE(mappings);
  const MappedMemory sum = sum_mappings(*mappings, kStack);
  EXPECT_EQ(sum.resident, (40 + 512 + 12000 + 4 + 8 + 8 + 20) * kKib);
  EXPECT_EQ(sum.files, (40 + 8) * kKib);
  EXPECT_EQ(sum.generated_code, 4 * kKib);
  // The range above the guard page is longer than a stack: what lies above it is something else's.
  EXPECT_EQ(sum.stacks, kStack + 20 * kKib);
}

TEST(ProcessMemory, RefusesDamagedText) {
  const std::string range = "00400000-00410000 r-xp 00000000 08:01 1234 /bin/a\n";
  const std::string rss = "Rss: 40 kB\n";
  ASSERT_TRUE(parse_smaps(range + rss));
  const std::vector<std::string> damaged = {
      "",
      "\n",
      range,
      rss,
      range + "Rss: 40 kB",
      range + rss + rss,
      range + rss + range + rss,
      range + range + rss,
      range + "Rss: 40 MB\n",
      range + "Rss: 40\n",
      range + "Rss: -4 kB\n",
      range + "Rss: 65 kB\n",
      range + "Rss: 99999999999999999999 kB\n",
      range + "Rss: 9007199254740992 kB\n",
      range + "Rss:\n",
      "00410000-00400000 r-xp 00000000 08:01 1234\n" + rss,
      "00400000-00400000 r-xp 00000000 08:01 1234\n" + rss,
      "g0400000-00410000 r-xp 00000000 08:01 1234\n" + rss,
      "00400000 00410000 r-xp 00000000 08:01 1234\n" + rss,
      "00400000-10000000000000000 r-xp 00000000 08:01 1234\n" + rss,
      "00400000-00410000 r-x 00000000 08:01 1234\n" + rss,
      "00400000-00410000 r-xp 00000000 08:01\n" + rss,
      "00400000-00410000\n" + rss,
      std::string("00400000-\0", 10) + "\n" + rss,
  };
  for (const std::string& text : damaged) {
    const auto mappings = parse_smaps(text);
    ASSERT_FALSE(mappings) << text;
    EXPECT_EQ(mappings.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(mappings.error().message, HasSubstr("memory map"));
  }
}

// Cut off anywhere but between ranges, the text is an error; it is never read beyond its end.
TEST(ProcessMemory, RefusesTextThatIsCutOff) {
  const std::string& text = sample();
  for (size_t length = 0; length < text.size(); ++length) {
    const auto mappings = parse_smaps(std::string(text, 0, length));
    if (!mappings) continue;
    EXPECT_EQ(text[length - 1], '\n') << length;
    EXPECT_LE(mappings->size(), 9u);
  }
}

TEST(ProcessMemory, MappedFilesAreBelowTheWhole) {
  const auto memory = mapped_memory();
  if (!memory) GTEST_SKIP() << memory.error().message;
  EXPECT_GT(memory->files, 0);
  EXPECT_GT(memory->stacks, 0);
  EXPECT_GT(memory->resident, memory->files + memory->stacks);
}

TEST(ProcessMemory, TheHeapGrowsByWhatIsAllocated) {
  const auto before = heap_in_use();
  if (!before || *before == 0) GTEST_SKIP() << "the C library or a sanitizer does not tell";
  const std::vector<char> block(size_t{16} << 20, 'x');
  EXPECT_GE(*heap_in_use() - *before, static_cast<int64_t>(block.size()));
}

}  // namespace
}  // namespace troika::cli
