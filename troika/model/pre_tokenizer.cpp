#include "troika/model/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <string>
#include <utility>

#include "troika/model/utf8.h"

namespace troika::model {
namespace {

// The expressions, in the notation of expand(): <L>, <N>, <P> and <S> stand, inside a class, for
// letters, numbers, punctuation and white space. Repetitions are possessive wherever giving back
// could not lead to a match, so that matching is linear in time and needs no stack.
constexpr std::string_view kGpt2 =
    "'(?:[stmd]|re|ve|ll)| ?[<L>]++| ?[<N>]++| ?[^<S><L><N>]++|[<S>]+(?![^<S>])|[<S>]++";
constexpr std::string_view kLlama3 =
    "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\\r\\n<L><N>]?[<L>]++|[<N>]{1,3}+"
    "| ?[^<S><L><N>]++[\\r\\n]*+|[<S>]*[\\r\\n]++|[<S>]+(?![^<S>])|[<S>]++";
constexpr std::string_view kQwen2 =
    "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\\r\\n<L><N>]?[<L>]++|[<N>]"
    "| ?[^<S><L><N>]++[\\r\\n]*+|[<S>]*[\\r\\n]++|[<S>]+(?![^<S>])|[<S>]++";
constexpr std::string_view kOneNumber = "[<N>]";
constexpr std::string_view kNumbers = "[<N>]++";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";
constexpr std::string_view kPunctuation = "[<P>$+<=>^~|]++";

// Each expression is applied in turn to the pieces that the ones before it left; a match and the
// text between two matches each become a piece.
struct Scheme {
  std::vector<std::string_view> expressions;
  bool takes_whole_words;
  bool adds_bos;
  std::vector<std::string_view> names;
};

// Names under which models need more than these expressions (a separator added, spaces stripped
// beside a mask token) are left out.
const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> all = {
      {{kOneNumber, kGpt2},
       false,
       false,
       {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
        "mellum2"}},
      {{kGpt2},
       false,
       false,
       {"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "a.x-4.0", "mellum", "mpt", "olmo",
        "jais", "trillion", "granite-docling", "exaone4"}},
      {{kLlama3},
       true,
       true,
       {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}},
      {{kLlama3}, false, false, {"dbrx", "smaug-bpe", "chatglm-bpe"}},
      {{kLlama3}, true, false, {"glm4", "glm5"}},
      {{kQwen2},
       false,
       false,
       {"qwen2", "deepseek-r1-qwen", "kormo", "stablelm2", "megrez", "hunyuan", "solar-open",
        "grok-2"}},
      {{kPunctuation, kGpt2, kNumbers, kThreeDigits}, false, false, {"default"}},
  };
  return all;
}

const Scheme* find_scheme(std::string_view name) {
  for (const Scheme& scheme : schemes()) {
    if (std::find(scheme.names.begin(), scheme.names.end(), name) != scheme.names.end()) {
      return &scheme;
    }
  }
  return nullptr;
}

std::string supported_names() {
  std::string out;
  for (const Scheme& scheme : schemes()) {
    for (std::string_view name : scheme.names) {
      if (!out.empty()) out += ", ";
      out += name;
    }
  }
  return out;
}

// Class members for the placeholders. The ranges after \p{..} were assigned in Unicode 15.0 and
// 15.1: vocabularies' reference tables have them, the PCRE2 10.42 of Debian 12 (Unicode 14) not.
// White space is written out because PCRE2's \s holds U+180E, which is none since Unicode 6.3.
struct Placeholder {
  std::string_view name;
  std::string_view members;
};
constexpr Placeholder kPlaceholders[] = {
    {"<L>",
     "a-zA-Z\\p{L}\\x{1123F}\\x{11240}\\x{11F02}\\x{11F04}-\\x{11F10}\\x{11F12}-\\x{11F33}"
     "\\x{1342F}\\x{13441}-\\x{13446}\\x{1B132}\\x{1B155}\\x{1DF25}-\\x{1DF2A}"
     "\\x{1E030}-\\x{1E06D}\\x{1E4D0}-\\x{1E4EB}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}"
     "\\x{31350}-\\x{323AF}"},
    {"<N>", "0-9\\p{N}\\x{11F50}-\\x{11F59}\\x{1D2C0}-\\x{1D2D3}\\x{1E4F0}-\\x{1E4F9}"},
    {"<P>", "\\p{P}\\x{11B00}-\\x{11B09}\\x{11F43}-\\x{11F4F}"},
    {"<S>",
     "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
     "\\x{205F}\\x{3000}"},
};

std::string expand(std::string_view expression) {
  std::string out(expression);
  for (const Placeholder& placeholder : kPlaceholders) {
    for (size_t at = out.find(placeholder.name); at != std::string::npos;
         at = out.find(placeholder.name, at + placeholder.members.size())) {
      out.replace(at, placeholder.name.size(), placeholder.members);
    }
  }
  return out;
}

// The expressions need neither; the limits only guard against a mistake in that reasoning.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 20'000;

// A byte that every expression treats as it treats U+FFFD: no letter, number, space or
// punctuation.
constexpr char kSymbolByte = '\x01';

}  // namespace

class PreTokenizer::Regex {
 public:
  static Result<std::unique_ptr<Regex>> create(std::string_view expression) {
    const std::string pattern = expand(expression);
    auto regex = std::make_unique<Regex>();
    int error = 0;
    PCRE2_SIZE error_at = 0;
    regex->code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &error_at, nullptr));
    regex->context_.reset(pcre2_match_context_create(nullptr));
    if (regex->code_ == nullptr || regex->context_ == nullptr) {
      return make_error(ErrorCode::kInternal,
                        "[model/tokenizer] PCRE2 refused an expression: error {} at {} of {}",
                        error, error_at, pattern);
    }
    // Without the just-in-time compiler matching is slower and otherwise the same.
    pcre2_jit_compile(regex->code_.get(), PCRE2_JIT_COMPLETE);
    pcre2_set_match_limit(regex->context_.get(), kMatchLimit);
    pcre2_set_heap_limit(regex->context_.get(), kHeapLimitKib);
    return regex;
  }

  // Calls `piece` with the matches in `text` and what lies between them.
  template <class Piece>
  void for_each_piece(std::string_view text, Piece piece) const {
    const std::unique_ptr<pcre2_match_data, Free> match(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    size_t done = 0;
    while (match != nullptr && done < text.size()) {
      const int found =
          pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), done,
                      PCRE2_NO_UTF_CHECK, match.get(), context_.get());
      if (found <= 0) break;
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
      if (range[0] > done) piece(text.substr(done, range[0] - done));
      piece(text.substr(range[0], range[1] - range[0]));
      done = range[1];
    }
    if (done < text.size()) piece(text.substr(done));
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_context, Free> context_;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const Scheme* scheme = find_scheme(name.empty() ? "default" : name);
  if (scheme == nullptr) {
    return make_error(ErrorCode::kUnsupported,
                      "[model/tokenizer] tokenizer.ggml.pre is \"{}\", which is not supported; "
                      "supported are {}",
                      name.substr(0, 100), supported_names());
  }
  PreTokenizer out;
  out.takes_whole_words_ = scheme->takes_whole_words;
  out.adds_bos_ = scheme->adds_bos;
  for (std::string_view expression : scheme->expressions) {
    ASSIGN_OR_RETURN(auto regex, Regex::create(expression));
    out.steps_.push_back(std::move(regex));
  }
  return out;
}

void PreTokenizer::for_each_word(std::string_view text,
                                 const std::function<void(std::string_view)>& word) const {
  size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) {
    split(0, text, word);
    return;
  }
  // PCRE2 must not see invalid UTF-8; a stand-in of equal length keeps the positions.
  std::string stand_in(text);
  while (valid < text.size()) {
    stand_in[valid++] = kSymbolByte;
    valid += valid_utf8_prefix(text.substr(valid));
  }
  split(0, stand_in, [&](std::string_view piece) {
    word(text.substr(static_cast<size_t>(piece.data() - stand_in.data()), piece.size()));
  });
}

void PreTokenizer::split(size_t step, std::string_view piece,
                         const std::function<void(std::string_view)>& word) const {
  if (step == steps_.size()) {
    word(piece);
    return;
  }
  steps_[step]->for_each_piece(piece, [&](std::string_view part) { split(step + 1, part, word); });
}

}  // namespace troika::model
