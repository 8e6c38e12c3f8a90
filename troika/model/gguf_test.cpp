#include "troika/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <limits>

#include "troika/model/testing/tiny_model.h"

namespace troika::model {
namespace {

using testing::GgufBytes;
using ::testing::HasSubstr;
using testing::TinyModel;

constexpr uint32_t kU8 = 0;
constexpr uint32_t kU32 = 4;
constexpr uint32_t kI32 = 5;
constexpr uint32_t kF32 = 6;
constexpr uint32_t kBool = 7;
constexpr uint32_t kText = 8;
constexpr uint32_t kArray = 9;
constexpr uint32_t kU64 = 10;
constexpr uint64_t kHuge = uint64_t{1} << 63;

Result<GgufHeader> read(const std::vector<std::byte>& bytes) {
  return read_gguf_header(*memory_source(bytes));
}

// The record of a tensor of F32.
GgufBytes& tensor(GgufBytes& out, std::string_view name, const std::vector<uint64_t>& dims,
                  uint64_t offset, uint32_t type = 0) {
  out.text(name).put(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) out.put(dim);
  return out.put(type).put(offset);
}

TEST(Gguf, ReadsEveryKindOfValue) {
  GgufBytes file;
  file.start(3, 0, 9);
  file.text("a.u8").put(kU8).put<uint8_t>(200);
  file.text("b.i32").put(kI32).put<int32_t>(-5);
  file.text("c.f32").put(kF32).put(1.5f);
  file.text("d.bool").put(kBool).put<uint8_t>(1);
  file.text("e.text").put(kText).text("h\n\x1b[31m");
  file.text("f.u64").put(kU64).put(kHuge);
  file.text("g.array")
      .put(kArray)
      .put(kU32)
      .put<uint64_t>(3)
      .put<uint32_t>(7)
      .put<uint32_t>(8)
      .put<uint32_t>(9);
  file.text("h.texts").put(kArray).put(kText).put<uint64_t>(2).text("x").text("yy");
  file.text("i.bools").put(kArray).put(kBool).put<uint64_t>(2).put<uint8_t>(0).put<uint8_t>(1);
  const auto header = read(file.bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->metadata.size(), 9u);
  EXPECT_EQ(*header->get_uint("a.u8").value(), 200u);
  EXPECT_EQ(*header->get_float("c.f32").value(), 1.5);
  EXPECT_TRUE(*header->get_bool("d.bool").value());
  EXPECT_EQ(*header->get_uint("f.u64").value(), kHuge);
  EXPECT_EQ(*header->get_string("e.text").value(), "h\n\x1b[31m");
  EXPECT_FALSE(header->get_uint("absent").value().has_value());

  const auto show = [&](const char* key) { return to_display(header->metadata.at(key), 2); };
  EXPECT_EQ(show("a.u8"), "200");
  EXPECT_EQ(show("b.i32"), "-5");
  EXPECT_EQ(show("c.f32"), "1.5");
  EXPECT_EQ(show("d.bool"), "true");
  EXPECT_EQ(show("e.text"), "\"h\\n\\x1b[31m\"");
  EXPECT_EQ(show("g.array"), "[7, 8, ... 3 in all]");
  EXPECT_EQ(show("h.texts"), "[\"x\", \"yy\"]");
  EXPECT_EQ(show("i.bools"), "[false, true]");
}

TEST(Gguf, LookUpRefusesOtherKinds) {
  GgufBytes file;
  file.start(2, 0, 3);
  file.text("text").put(kText).text("12");
  file.text("negative").put(kI32).put<int32_t>(-1);
  file.text("int").put(kU32).put<uint32_t>(1);
  const auto header = read(file.bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->version, 2u);
  for (const auto& error : {header->get_uint("text").error(), header->get_uint("negative").error(),
                            header->get_float("int").error(), header->get_bool("int").error(),
                            header->get_string("int").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kInvalidData) << error.message;
  }
}

TEST(Gguf, ReadsTensorsAtTheirOffsets) {
  GgufBytes file;
  file.start(3, 2, 1);
  file.text("general.alignment").put(kU32).put<uint32_t>(64);
  tensor(file, "a", {5}, 0);
  tensor(file, "b", {32, 3}, 64, static_cast<uint32_t>(TensorType::kQ8_0));
  file.pad(64);
  const size_t data = file.bytes().size();
  file.zeros(64 + 3 * 34);
  const auto header = read(file.bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->alignment, 64u);
  EXPECT_EQ(header->data_offset, data);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].file_offset, data);
  EXPECT_EQ(header->tensors[0].bytes, 20u);
  EXPECT_EQ(header->tensors[1].file_offset, data + 64);
  EXPECT_EQ(header->tensors[1].bytes, 102u);
}

TEST(Gguf, SuperBlocksHaveTheirSizes) {
  GgufBytes file;
  file.start(3, 2, 0);
  tensor(file, "a", {512, 3}, 0, static_cast<uint32_t>(TensorType::kQ4_K));
  tensor(file, "b", {256, 2}, 864, static_cast<uint32_t>(TensorType::kQ6_K));
  const auto header = read(file.pad(32).zeros(864 + 420).bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors[0].bytes, 3u * 2 * 144);
  EXPECT_EQ(header->tensors[1].bytes, 2u * 210);
  file.bytes().pop_back();
  EXPECT_FALSE(read(file.bytes()));
}

TEST(Gguf, UnsupportedTypesAreListedWithoutSize) {
  GgufBytes file;
  file.start(3, 1, 0);
  tensor(file, "a", {256, 2}, 0, 13);
  const auto header = read(file.pad(32).zeros(288).bytes());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors[0].bytes, 0u);
  EXPECT_EQ(gguf_type_name(13), "Q5_K");
  EXPECT_EQ(gguf_type_name(77), "#77");
}

TEST(Gguf, EveryTruncationIsAnErrorUntilTheDataIsWhole) {
  const std::vector<std::byte> whole = TinyModel().bytes();
  const auto header = read(whole);
  ASSERT_TRUE(header) << header.error().message;
  const GgufTensor& last = header->tensors.back();
  ASSERT_EQ(last.file_offset + last.bytes, whole.size());
  for (size_t n = 0; n < whole.size(); n += n < 600 ? 1 : 97) {
    const auto cut = read_gguf_header(*memory_source(std::span(whole).first(n)));
    ASSERT_FALSE(cut) << n;
    ASSERT_EQ(cut.error().code, ErrorCode::kInvalidData) << cut.error().message;
  }
}

TEST(Gguf, PrintableEscapesWhatSteersTerminals) {
  EXPECT_EQ(printable("Ġhello"), "Ġhello");
  EXPECT_EQ(printable("a\xff"
                      "b\xc2\x9b"),
            "a\\xffb\\xc2\\x9b");
  EXPECT_EQ(printable("abcdef", 3), "abc... (6 bytes)");
}

struct Hostile {
  const char* name;
  std::function<void(GgufBytes&)> make;
  const char* message;
  ErrorCode code = ErrorCode::kInvalidData;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileGguf : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileGguf, IsRefusedAtOnce) {
  GgufBytes file;
  GetParam().make(file);
  const std::clock_t start = std::clock();
  const auto header = read(file.bytes());
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, GetParam().code) << header.error().message;
  EXPECT_THAT(header.error().message, HasSubstr(GetParam().message));
  EXPECT_LT(took, 1.0);
}

void one_tensor(GgufBytes& f, const std::vector<uint64_t>& dims, uint32_t type = 0) {
  f.start(3, 1, 0);
  tensor(f, "t", dims, 0, type).pad(32);
}

void alignment(GgufBytes& f, uint32_t value) {
  f.start(3, 0, 1).text("general.alignment").put(kU32).put(value);
}

const Hostile kStarts[] = {
    {"Empty", [](GgufBytes&) {}, "empty"},
    {"MagicOnly", [](GgufBytes& f) { f.put_raw("GGUF", 4); }, "incomplete"},
    {"ShortMagic", [](GgufBytes& f) { f.put_raw("GG", 2); }, "not a GGUF file"},
    {"Text", [](GgufBytes& f) { f.put_raw("<html>", 6); }, "begins with \"<htm\""},
    {"GitLfsPointer", [](GgufBytes& f) { f.put_raw("version https://git-lfs", 23); }, "LFS"},
    {"OlderFormat", [](GgufBytes& f) { f.put_raw("tjgg\3\0\0\0", 8); }, "older than GGUF",
     ErrorCode::kUnsupported},
    {"Version0", [](GgufBytes& f) { f.start(0, 0, 0); }, "version 0"},
    {"Version1", [](GgufBytes& f) { f.start(1, 0, 0); }, "version 1", ErrorCode::kUnsupported},
    {"Version999", [](GgufBytes& f) { f.start(999, 0, 0); }, "version 999"},
    {"ByteSwapped", [](GgufBytes& f) { f.start(0x03000000, 0, 0); }, "big-endian",
     ErrorCode::kUnsupported},
    {"HugeMetadataCount", [](GgufBytes& f) { f.start(3, 0, kHuge); }, "9223372036854775808"},
    {"HugeTensorCount", [](GgufBytes& f) { f.start(3, kHuge, 0).zeros(64); },
     "9223372036854775808"},
};
INSTANTIATE_TEST_SUITE_P(Start, HostileGguf, ::testing::ValuesIn(kStarts));

const Hostile kMetadata[] = {
    {"LongestString",
     [](GgufBytes& f) { f.start(3, 0, 1).put(std::numeric_limits<uint64_t>::max()).zeros(99); },
     "18446744073709551615 more bytes"},
    {"GibibyteString",
     [](GgufBytes& f) { f.start(3, 0, 1).text("k").put(kText).put(uint64_t{1} << 30).zeros(99); },
     "1073741824 more bytes"},
    {"LongKey", [](GgufBytes& f) { f.start(3, 0, 1).put<uint64_t>(70000).zeros(80000); },
     "70000 bytes"},
    {"ArrayOfArrays",
     [](GgufBytes& f) {
       f.start(3, 0, 1).text("k").put(kArray);
       for (int i = 0; i < 10000; ++i) f.put(kArray).put<uint64_t>(1);
     },
     "array of arrays", ErrorCode::kUnsupported},
    {"HugeArray",
     [](GgufBytes& f) {
       f.start(3, 0, 1).text("k").put(kArray).put(kU64).put(uint64_t{1} << 61).zeros(99);
     },
     "2305843009213693952 elements"},
    {"HugeStringArray",
     [](GgufBytes& f) {
       f.start(3, 0, 1).text("k").put(kArray).put(kText).put(uint64_t{1} << 61).zeros(99);
     },
     "metadata 'k'"},
    // 30 MB of bytes, which widened would take 240 MB.
    {"WideningArray",
     [](GgufBytes& f) {
       f.start(3, 0, 1).text("k").put(kArray).put(kU8).put<uint64_t>(30 << 20).zeros(30 << 20);
     },
     "96 MiB"},
    // 5 million strings of no length, of 32 bytes each in memory.
    {"EmptyStrings",
     [](GgufBytes& f) {
       f.start(3, 0, 1).text("k").put(kArray).put(kText).put<uint64_t>(5 << 20).zeros(40 << 20);
     },
     "96 MiB"},
    {"TooManyKeys", [](GgufBytes& f) { f.start(3, 0, 70000).zeros(70000 * 13); }, "70000 metadata"},
    {"TooManyTensors", [](GgufBytes& f) { f.start(3, 140000, 0).zeros(140000 * 32); },
     "140000 tensors"},
    {"UnknownValueType",
     [](GgufBytes& f) { f.start(3, 0, 1).text("k").put<uint32_t>(13).zeros(99); },
     "unknown value type 13"},
    {"UnknownElementType",
     [](GgufBytes& f) { f.start(3, 0, 1).text("k").put(kArray).put<uint32_t>(77).zeros(99); },
     "element type 77"},
    {"BoolOf2", [](GgufBytes& f) { f.start(3, 0, 1).text("k").put(kBool).put<uint8_t>(2); },
     "bool"},
    {"KeyTwice",
     [](GgufBytes& f) {
       f.start(3, 0, 2);
       f.text("k").put(kU32).put<uint32_t>(1).text("k").put(kU32).put<uint32_t>(1);
     },
     "'k' is given twice"},
    {"Alignment0", [](GgufBytes& f) { alignment(f, 0); }, "general.alignment is 0"},
    {"Alignment3", [](GgufBytes& f) { alignment(f, 3); }, "general.alignment is 3"},
    {"Alignment2To30", [](GgufBytes& f) { alignment(f, 1u << 30); }, "general.alignment is 1073"},
    {"Alignment2To31", [](GgufBytes& f) { alignment(f, 1u << 31); }, "general.alignment is 2147"},
    {"AlignmentAsText",
     [](GgufBytes& f) { f.start(3, 0, 1).text("general.alignment").put(kText).text("32"); },
     "not an integer"},
};
INSTANTIATE_TEST_SUITE_P(Metadata, HostileGguf, ::testing::ValuesIn(kMetadata));

const Hostile kTensors[] = {
    {"NoDimensions", [](GgufBytes& f) { f.start(3, 1, 0).text("t").put<uint32_t>(0).zeros(99); },
     "0 dimensions"},
    {"FiveDimensions",
     [](GgufBytes& f) {
       one_tensor(f, {1, 1, 1, 1, 1});
     },
     "5 dimensions"},
    {"MostDimensions", [](GgufBytes& f) { f.start(3, 1, 0).text("t").put(~uint32_t{0}).zeros(99); },
     "4294967295 dimensions"},
    {"ZeroDimension",
     [](GgufBytes& f) {
       one_tensor(f, {4, 0});
     },
     "a dimension is 0"},
    {"ProductWraps",
     [](GgufBytes& f) {
       one_tensor(f, {uint64_t{1} << 32, uint64_t{1} << 32, 2});
     },
     "2^63"},
    {"BytesWrap", [](GgufBytes& f) { one_tensor(f, {uint64_t{1} << 62}); }, "2^63 bytes"},
    {"PartOfBlock",
     [](GgufBytes& f) {
       one_tensor(f, {33, 2}, static_cast<uint32_t>(TensorType::kQ4_0));
     },
     "multiple of 32"},
    {"LongName", [](GgufBytes& f) { f.start(3, 1, 0).text(std::string(300, 'x')).zeros(99); },
     "300 bytes"},
    {"PastTheEnd", [](GgufBytes& f) { one_tensor(f, {1000}); }, "the file has 64 bytes"},
    {"OffsetPastTheEnd",
     [](GgufBytes& f) {
       f.start(3, 1, 0);
       tensor(f, "t", {8}, uint64_t{1} << 40).pad(32).zeros(32);
     },
     "tensor 't' needs"},
    {"OffsetWraps",
     [](GgufBytes& f) {
       f.start(3, 1, 0);
       tensor(f, "t", {8}, ~uint64_t{31}).pad(32).zeros(32);
     },
     "beyond any file"},
    {"OffsetUnaligned",
     [](GgufBytes& f) {
       f.start(3, 1, 0);
       tensor(f, "t", {8}, 4).pad(32).zeros(64);
     },
     "multiple of the alignment 32"},
    {"Overlapping",
     [](GgufBytes& f) {
       f.start(3, 2, 0);
       tensor(f, "a", {16}, 0);
       tensor(f, "b", {16}, 32).pad(32).zeros(96);
     },
     "'a' and 'b' overlap"},
    {"SamePlace",
     [](GgufBytes& f) {
       f.start(3, 2, 0);
       tensor(f, "a", {16}, 0);
       tensor(f, "b", {16}, 0).pad(32).zeros(96);
     },
     "overlap"},
    {"NameTwice",
     [](GgufBytes& f) {
       f.start(3, 2, 0);
       tensor(f, "a", {8}, 0);
       tensor(f, "a", {8}, 32).pad(32).zeros(96);
     },
     "'a' is given twice"},
};
INSTANTIATE_TEST_SUITE_P(Tensors, HostileGguf, ::testing::ValuesIn(kTensors));

}  // namespace
}  // namespace troika::model
