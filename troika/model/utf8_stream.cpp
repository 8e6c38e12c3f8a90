#include "troika/model/tokenizer.h"
#include "troika/model/utf8.h"

namespace troika::model {

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    const size_t whole = valid_utf8_prefix(rest);
    out += rest.substr(0, whole);
    at += whole;
    if (whole == rest.size()) break;
    const Utf8Char bad = next_utf8(rest.substr(whole));
    if (bad.cut_off) break;
    out += kReplacementCharacter;
    at += bad.length;
  }
  pending_.erase(0, at);
  return out;
}

std::string Utf8Stream::finish() {
  // What is pending began a character and never ended it: one replacement, as for any other.
  const bool incomplete = !pending_.empty();
  pending_.clear();
  return std::string(incomplete ? kReplacementCharacter : std::string_view());
}

}  // namespace troika::model
