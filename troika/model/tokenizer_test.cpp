#include "troika/model/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "troika/model/byte_map.h"

namespace troika::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TokenId kHe = 256, kLl = 257, kHell = 258, kHello = 259, kSpaceW = 260;
constexpr TokenId kEnd = 261, kStart = 262, kStartLong = 263, kUser = 264, kUnknown = 265;

// All bytes, a few merges, and special tokens that overlap.
TokenizerData small_data() {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.emplace_back(byte_name(static_cast<uint8_t>(byte)));
  }
  for (const char* name :
       {"he", "ll", "hell", "hello", "Ġw", "<|im_end|>", "<s>", "<s><x>", "[[user]]", "<unk>"}) {
    data.tokens.emplace_back(name);
  }
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  for (TokenId id : {kEnd, kStart, kStartLong}) {
    data.types[static_cast<size_t>(id)] = TokenType::kControl;
  }
  data.types[kUser] = TokenType::kUserDefined;
  data.types[kUnknown] = TokenType::kUnknown;
  data.merges = {"h e", "l l", "he ll", "hell o", "Ġ w"};
  data.bos = kStart;
  data.eos = kEnd;
  return data;
}

Tokenizer make(TokenizerData data) {
  auto made = Tokenizer::create(std::move(data));
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

TEST(Tokenizer, MergesTheBestPairFirst) {
  const Tokenizer tokenizer = make(small_data());
  EXPECT_THAT(tokenizer.encode("hello", false), ElementsAre(kHello));
  EXPECT_THAT(tokenizer.encode("hellhe w", false), ElementsAre(kHell, kHe, kSpaceW));
  EXPECT_THAT(tokenizer.encode("lllo", false), ElementsAre(kLl, 'l', 'o'));
  EXPECT_THAT(tokenizer.encode("", false), IsEmpty());
}

TEST(Tokenizer, NeverMergesAcrossWords) {
  const Tokenizer tokenizer = make(small_data());
  EXPECT_THAT(tokenizer.encode("h3e", false), ElementsAre('h', '3', 'e'));
}

TEST(Tokenizer, TypedTextNeverBecomesAControlToken) {
  const Tokenizer tokenizer = make(small_data());
  for (const char* text : {"<s>", "<|im_end|>", "<unk>", "<s><x>"}) {
    for (TokenId id : tokenizer.encode(text, false)) EXPECT_LT(id, 256) << text;
    EXPECT_EQ(tokenizer.encode(text, true).size(), 1u) << text;
  }
}

TEST(Tokenizer, ControlTokensAreNotReachedByMergesEither) {
  TokenizerData data = small_data();
  data.types[kHello] = TokenType::kControl;
  const Tokenizer tokenizer = make(std::move(data));
  EXPECT_THAT(tokenizer.encode("hello", false), ElementsAre(kHell, 'o'));
  EXPECT_THAT(tokenizer.encode("hello", true), ElementsAre(kHello));
}

TEST(Tokenizer, NamesThatEndGenerationAreControlTokensWhateverTheirType) {
  TokenizerData data = small_data();
  data.tokens.push_back("</s>");
  data.types.push_back(TokenType::kUserDefined);
  const Tokenizer tokenizer = make(std::move(data));
  EXPECT_TRUE(tokenizer.is_special(kUnknown + 1));
  EXPECT_TRUE(tokenizer.is_end_of_generation(kUnknown + 1));
  EXPECT_THAT(tokenizer.encode("</s>", false), ElementsAre('<', '/', 's', '>'));
  EXPECT_THAT(tokenizer.encode("</s>", true), ElementsAre(kUnknown + 1));
}

TEST(Tokenizer, TakesTheLongestSpecialTokenAndThenTheRest) {
  const Tokenizer tokenizer = make(small_data());
  EXPECT_THAT(tokenizer.encode("<s><x>", true), ElementsAre(kStartLong));
  EXPECT_THAT(tokenizer.encode("<s><s><x><s", true), ElementsAre(kStart, kStartLong, '<', 's'));
  EXPECT_THAT(tokenizer.encode("hello<|im_end|> w", true), ElementsAre(kHello, kEnd, kSpaceW));
}

TEST(Tokenizer, OfOverlappingSpecialTokensTheLongestWinsAndAShorterOneFillsTheGap) {
  TokenizerData data = small_data();
  for (const char* name : {"ab", "abc", "bcde", "cdefg"}) data.tokens.emplace_back(name);
  data.types.resize(data.tokens.size(), TokenType::kControl);
  const TokenId ab = kUnknown + 1;
  const Tokenizer tokenizer = make(std::move(data));
  EXPECT_THAT(tokenizer.encode("abcdefg", true), ElementsAre(ab, ab + 3));
  EXPECT_THAT(tokenizer.encode("abcde", true), ElementsAre('a', ab + 2));
}

TEST(Tokenizer, UserDefinedTokensAreFoundInTypedText) {
  const Tokenizer tokenizer = make(small_data());
  EXPECT_THAT(tokenizer.encode("he[[user]]he", false), ElementsAre(kHe, kUser, kHe));
  EXPECT_EQ(tokenizer.piece(kUser, false), "[[user]]");
  EXPECT_FALSE(tokenizer.is_special(kUser));
}

TEST(Tokenizer, SpansJoinTextButNotControlTokens) {
  const Tokenizer tokenizer = make(small_data());
  const auto encode = [&](std::vector<TextSpan> spans) { return tokenizer.encode(spans); };
  EXPECT_THAT(encode({{"he", true}, {"llo", false}}), ElementsAre(kHello));
  EXPECT_THAT(encode({{"<s>he", true}, {"", false}, {"llo<s>", false}, {"<s>", true}}),
              ElementsAre(kStart, kHello, '<', 's', '>', kStart));
  // Half of the name is typed: no control token.
  EXPECT_THAT(encode({{"<s", true}, {">", false}}), ElementsAre('<', 's', '>'));
  EXPECT_THAT(encode({{"<s", false}, {">", true}}), ElementsAre('<', 's', '>'));
  EXPECT_THAT(encode({{"<s>", true}, {"<x>", false}}), ElementsAre(kStart, '<', 'x', '>'));
  EXPECT_THAT(encode({{"[[us", true}, {"er]]", false}}), ElementsAre(kUser));
  EXPECT_THAT(encode({}), IsEmpty());
}

TEST(Tokenizer, PiecesOfSpecialTokensAreTheirNamesOrNothing) {
  const Tokenizer tokenizer = make(small_data());
  EXPECT_EQ(tokenizer.piece(kEnd, true), "<|im_end|>");
  EXPECT_EQ(tokenizer.piece(kEnd, false), "");
  EXPECT_EQ(tokenizer.piece(kSpaceW, false), " w");
  EXPECT_EQ(tokenizer.piece(0x80, false), "\x80");
  EXPECT_EQ(tokenizer.piece(-1, true), "");
  EXPECT_EQ(tokenizer.piece(100000, true), "");
  EXPECT_EQ(tokenizer.name(kSpaceW), "Ġw");
  EXPECT_EQ(tokenizer.name(-1), "");
  const std::vector<TokenId> ids = {kStart, kHello, kSpaceW, kEnd};
  EXPECT_EQ(tokenizer.decode(ids, true), "<s>hello w<|im_end|>");
  EXPECT_EQ(tokenizer.decode(ids, false), "hello w");
}

TEST(Tokenizer, NamesOutsideTheByteMapAreGivenAsTheyAre) {
  TokenizerData data = small_data();
  data.tokens.push_back("a bĠ漢");
  data.tokens.push_back("\xFF");
  data.tokens.push_back("");
  data.types.resize(data.tokens.size(), TokenType::kNormal);
  const Tokenizer tokenizer = make(std::move(data));
  EXPECT_EQ(tokenizer.piece(kUnknown + 1, false), "a b 漢");
  EXPECT_EQ(tokenizer.piece(kUnknown + 2, false), "\xFF");
  EXPECT_EQ(tokenizer.piece(kUnknown + 3, false), "");
}

TEST(Tokenizer, EveryByteStringComesBack) {
  const Tokenizer tokenizer = make(small_data());
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = static_cast<char>(random() % (i % 2 ? 256 : 128));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), true), text);
  }
}

TEST(Tokenizer, BytesThatTheVocabularyLacks) {
  TokenizerData data = small_data();
  for (int byte : {0xFF, 0x04})
    data.tokens[static_cast<size_t>(byte)] = "gone" + std::to_string(byte);
  const Tokenizer tokenizer = make(std::move(data));
  // Outside UTF-8 it becomes U+FFFD; inside it is left out.
  EXPECT_THAT(tokenizer.encode("\xFF\xFE", false), ElementsAre(0xEF, 0xBF, 0xBD, 0xFE));
  EXPECT_THAT(tokenizer.encode("a\x04z", false), ElementsAre('a', 'z'));
}

TEST(Tokenizer, ByteTypeTokens) {
  TokenizerData data = small_data();
  data.tokens.push_back("<0x0a>");
  data.types.push_back(TokenType::kByte);
  EXPECT_EQ(make(data).piece(kUnknown + 1, false), "\n");
  for (const char* name : {"<0x-1>", "<0xZZ>", "<0x0A", "", "<0x100>"}) {
    data.tokens.back() = name;
    auto made = Tokenizer::create(data);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(made.error().message, HasSubstr("266"));
  }
}

TEST(Tokenizer, EndOfGenerationIsByIdAndByName) {
  TokenizerData data = small_data();
  data.eot = 'x';
  const Tokenizer tokenizer = make(std::move(data));
  EXPECT_TRUE(tokenizer.is_end_of_generation(kEnd));
  EXPECT_TRUE(tokenizer.is_end_of_generation('x'));
  EXPECT_FALSE(tokenizer.is_end_of_generation(kStart));
  EXPECT_FALSE(tokenizer.is_end_of_generation(-1));
}

TEST(Tokenizer, PlainEndIsNoEndOfGenerationWhereTurnsHaveSeveralMessages) {
  TokenizerData data = small_data();
  data.tokens.insert(data.tokens.end(), {"<|end|>", "<|return|>"});
  data.types.resize(data.tokens.size(), TokenType::kControl);
  EXPECT_TRUE(make(data).is_end_of_generation(kUnknown + 1));
  data.tokens.push_back("<|call|>");
  data.types.push_back(TokenType::kControl);
  EXPECT_FALSE(make(data).is_end_of_generation(kUnknown + 1));
  EXPECT_TRUE(make(data).is_end_of_generation(kUnknown + 3));
}

TEST(Tokenizer, BosByFileElseByPreTokenizer) {
  TokenizerData data = small_data();
  EXPECT_FALSE(make(data).add_bos());
  data.pre = "llama-bpe";
  EXPECT_TRUE(make(data).add_bos());
  data.add_bos = false;
  EXPECT_FALSE(make(data).add_bos());
  data.add_bos.reset();
  data.bos.reset();
  EXPECT_FALSE(make(data).add_bos());
  EXPECT_FALSE(make(data).add_eos());
  data.add_eos = true;
  EXPECT_TRUE(make(data).add_eos());
}

TEST(Tokenizer, LlamaTakesWholeWords) {
  TokenizerData data = small_data();
  data.tokens.push_back("Ġwhole");  // no merge leads to it
  data.types.push_back(TokenType::kNormal);
  data.pre = "llama-bpe";
  EXPECT_THAT(make(data).encode(" whole", false), ElementsAre(kUnknown + 1));
  data.types.back() = TokenType::kControl;
  EXPECT_THAT(make(data).encode(" whole", false), ElementsAre(kSpaceW, 'h', 'o', 'l', 'e'));
}

TEST(Tokenizer, OfEqualNamesTheLastAndOfEqualMergesTheFirst) {
  TokenizerData data = small_data();
  data.tokens.push_back("he");
  data.types.push_back(TokenType::kNormal);
  data.merges.push_back("h e");
  EXPECT_THAT(make(std::move(data)).encode("he", false), ElementsAre(kUnknown + 1));
}

void expect_refused(TokenizerData data, ErrorCode code, const std::string& part) {
  auto made = Tokenizer::create(std::move(data));
  ASSERT_FALSE(made) << part;
  EXPECT_EQ(made.error().code, code) << made.error().message;
  EXPECT_THAT(made.error().message, HasSubstr(part));
}

TEST(Tokenizer, RefusesWhatContradictsItself) {
  TokenizerData data = small_data();
  data.bos = 266;
  expect_refused(data, ErrorCode::kInvalidData, "bos_token_id is 266");
  data.bos = -1;
  expect_refused(data, ErrorCode::kInvalidData, "bos_token_id is -1");
  data = small_data();
  data.pad = 1 << 30;
  expect_refused(data, ErrorCode::kInvalidData, "vocabulary has 266 tokens");
  data = small_data();
  data.types.pop_back();
  expect_refused(data, ErrorCode::kInvalidData, "265 token types for 266 tokens");
  data = small_data();
  data.tokens.clear();
  data.types.clear();
  expect_refused(data, ErrorCode::kInvalidData, "0 tokens");
  data = small_data();
  data.add_bos = true;
  data.bos.reset();
  expect_refused(data, ErrorCode::kInvalidData, "bos_token_id");
  data = small_data();
  data.tokens[kUser] = std::string(100000, 'x');
  expect_refused(data, ErrorCode::kInvalidData, "100000 bytes");
}

TEST(Tokenizer, RefusesMergesOfAbsentTokens) {
  for (const char* merge : {"he llx", "xx a", "a b", "ab", "", " ", "a ", "a b c"}) {
    TokenizerData data = small_data();
    data.merges.push_back(merge);
    expect_refused(data, ErrorCode::kInvalidData, fmt::format("merge 5 is \"{}\"", merge));
  }
}

TEST(Tokenizer, RefusesOtherKinds) {
  TokenizerData data = small_data();
  data.model = "llama";
  expect_refused(data, ErrorCode::kUnsupported, "\"llama\"");
  data = small_data();
  data.pre = "from-the-future";
  expect_refused(data, ErrorCode::kUnsupported, "\"from-the-future\"");
  expect_refused(data, ErrorCode::kUnsupported, "smollm");
  data.pre = "";
  EXPECT_TRUE(Tokenizer::create(data));
}

TEST(Tokenizer, AMegabyteInOneWordIsNoTrouble) {
  const Tokenizer tokenizer = make(small_data());
  std::string text;
  while (text.size() < 1'000'000) text += "hello";
  EXPECT_EQ(tokenizer.encode(text, false), std::vector<TokenId>(text.size() / 5, kHello));
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(tokenizer.encode(spaces, false).size(), spaces.size());
  const std::string invalid(1'000'000, '\xFF');
  EXPECT_EQ(tokenizer.encode(invalid, false).size(), invalid.size());
}

// Straight from the definition: join the best pair, the leftmost of equals, until there is none.
std::vector<std::string> merge_slowly(const std::string& word,
                                      const std::vector<std::string>& merges) {
  std::vector<std::string> parts;
  for (char c : word) parts.emplace_back(1, c);
  for (;;) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::find(merges.begin(), merges.end(), parts[i] + " " + parts[i + 1]);
      const size_t rank = static_cast<size_t>(found - merges.begin());
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == merges.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Tokenizer, MergesAsTheDefinitionSays) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    TokenizerData data;
    data.model = "gpt2";
    data.pre = "gpt-2";
    data.tokens = {"a", "b", "c"};
    while (data.merges.size() < 30) {
      const std::string left = data.tokens[random() % data.tokens.size()];
      const std::string right = data.tokens[random() % data.tokens.size()];
      if (left.size() + right.size() > 6) continue;
      data.merges.push_back(left + " " + right);
      data.tokens.push_back(left + right);
    }
    const Tokenizer tokenizer = make(data);
    for (int i = 0; i < 50; ++i) {
      std::string word(random() % 30, ' ');
      for (char& c : word) c = static_cast<char>('a' + random() % 3);
      std::vector<std::string> parts;
      for (TokenId id : tokenizer.encode(word, false)) parts.emplace_back(tokenizer.name(id));
      EXPECT_EQ(parts, merge_slowly(word, data.merges)) << word;
    }
  }
}

TEST(Utf8Stream, HoldsBackUnfinishedCharacters) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x8A!"), "😊!");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesWhatCannotBecomeValid) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("x"), "\uFFFDx");
  EXPECT_EQ(stream.push("\xC0\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(stream.push("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(stream.push("\xF4\x90"), "\uFFFD\uFFFD");            // above U+10FFFF
  EXPECT_EQ(stream.push("\xF0\x90\x80"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, GivesTheSameForAnyCut) {
  std::mt19937 random(2);
  const std::vector<std::string> parts = {"a", "é", "漢", "😊", "\xFF", "\xE2\x82", "\xF0", "\x80"};
  for (int i = 0; i < 300; ++i) {
    std::string bytes;
    for (int k = 0; k < 8; ++k) bytes += parts[random() % parts.size()];
    Utf8Stream whole;
    std::string expected = whole.push(bytes);
    expected += whole.finish();
    Utf8Stream cut;
    std::string out;
    for (char c : bytes) out += cut.push(std::string_view(&c, 1));
    out += cut.finish();
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace troika::model
