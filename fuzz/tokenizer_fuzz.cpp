// An arbitrary small vocabulary and an arbitrary text: nothing crashes, typed text never becomes a
// control token, and where the vocabulary has all bytes the text comes back.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "troika/model/byte_map.h"
#include "troika/model/tokenizer.h"

namespace {

using namespace troika::model;

// Takes values off the front of the input; zeros when it is used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::string text(size_t length) {
    length = std::min(length, size_);
    std::string out(reinterpret_cast<const char*>(data_), length);
    data_ += length;
    size_ -= length;
    return out;
  }
  size_t left() const { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "tokenizer_fuzz: %s\n", what);
  std::abort();
}

constexpr const char* kPreTokenizers[] = {"smollm",  "gpt-2", "llama-bpe", "qwen2",
                                          "default", "",      "glm4",      "unknown"};

struct Vocabulary {
  TokenizerData data;
  bool gives_text_back = true;  // by construction; see below
};

// A name is a few raw bytes, or the names of a few bytes.
std::string read_name(Bytes& in) {
  const uint8_t shape = in.byte();
  std::string bytes = in.text(shape % 5);
  if (shape & 0x80) return bytes;
  std::string name;
  for (char c : bytes) name += byte_name(static_cast<uint8_t>(c));
  return name;
}

Vocabulary read_vocabulary(Bytes& in) {
  Vocabulary out;
  TokenizerData& data = out.data;
  data.model = "gpt2";
  data.pre = kPreTokenizers[in.byte() % 8];
  const uint8_t flags = in.byte();
  out.gives_text_back = (flags & 1) == 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (!out.gives_text_back && byte % 3 == 0) continue;
    data.tokens.emplace_back(byte_name(static_cast<uint8_t>(byte)));
  }
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  const size_t n_bytes = data.tokens.size();
  for (int n = in.byte() % 16; n > 0; --n) {
    data.tokens.push_back(read_name(in));
    data.types.push_back(static_cast<TokenType>(in.byte() % 8));
    // Tokens of other types than these are not written as the text from which they came.
    const TokenType type = data.types.back();
    if (type != TokenType::kNormal && type != TokenType::kControl && type != TokenType::kUnknown) {
      out.gives_text_back = false;
    }
    const auto bytes_end = data.tokens.begin() + static_cast<std::ptrdiff_t>(n_bytes);
    if (type != TokenType::kNormal &&
        std::find(data.tokens.begin(), bytes_end, data.tokens.back()) != bytes_end) {
      out.gives_text_back = false;  // stands in the place of a byte
    }
  }
  for (int n = in.byte() % 16; n > 0; --n) {
    const std::string left = data.tokens[in.byte() % data.tokens.size()];
    const std::string right = data.tokens[in.byte() % data.tokens.size()];
    data.merges.push_back(left + " " + right);
    if (flags & 2) {  // a merge that is sound
      data.tokens.push_back(left + right);
      data.types.push_back(TokenType::kNormal);
    }
  }
  if (flags & 4) data.bos = in.byte() * 2 - 4;
  if (flags & 8) data.eos = in.byte();
  if (flags & 16) data.types.clear();
  if (flags & 32) data.add_bos = true;
  return out;
}

void check_text(const Tokenizer& tokenizer, const std::vector<TextSpan>& spans,
                bool gives_text_back) {
  std::string text;
  bool parsed = false;
  for (const TextSpan& span : spans) {
    text += span.text;
    parsed |= span.parse_special;
  }
  const std::vector<TokenId> ids = tokenizer.encode(spans);
  for (TokenId id : ids) {
    require(id >= 0 && id < tokenizer.vocab_size(), "an id outside the vocabulary");
    require(parsed || !tokenizer.is_special(id), "typed text became a control token");
  }
  const std::string decoded = tokenizer.decode(ids, true);
  if (gives_text_back) require(decoded == text, "the text did not come back");

  Utf8Stream whole;
  std::string at_once = whole.push(decoded);
  at_once += whole.finish();
  Utf8Stream stream;
  std::string in_pieces;
  for (TokenId id : ids) in_pieces += stream.push(tokenizer.piece(id, true));
  in_pieces += stream.finish();
  require(in_pieces == at_once, "a stream's text depends on how it is cut");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes in(data, size);
  const Vocabulary vocabulary = read_vocabulary(in);
  const auto tokenizer = Tokenizer::create(vocabulary.data);
  if (!tokenizer) {
    require(!tokenizer.error().message.empty(), "an error without a message");
    return 0;
  }
  std::vector<std::string> texts;
  std::vector<bool> parse;
  while (in.left() > 0) {
    const uint8_t head = in.byte();
    parse.push_back(head & 1);
    texts.push_back(in.text(head >> 1));
  }
  std::vector<TextSpan> spans;
  for (size_t i = 0; i < texts.size(); ++i) spans.push_back({texts[i], parse[i]});
  check_text(*tokenizer, spans, vocabulary.gives_text_back);
  return 0;
}
