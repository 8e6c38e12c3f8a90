// From what the user typed to token ids: raw, or through the model's chat template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "troika/base/result.h"
#include "troika/model/chat_template.h"
#include "troika/model/model.h"

namespace troika::cli {

// -p, -f and how to read them.
struct PromptFlags {
  std::string prompt;
  std::string file;
  bool escape = false;
  void declare(Flags& flags);
  // The text: of -p, of the file, or of standard input where it is no terminal. Remembers which.
  Result<std::string> read(const Flags& flags) const;
};

// Special tokens in `text` are parsed if asked; BOS comes first only if the file says so.
std::vector<model::TokenId> encode_raw(const model::Tokenizer& tokenizer, std::string_view text,
                                       bool parse_special, bool add_bos = true);

// A model's template and what it needs.
class ChatEncoder {
 public:
  // The file's own template, or that of `template_file` if not empty. kUnsupported without either.
  static Result<ChatEncoder> create(const model::Model& model, const std::string& template_file);

  // Tokens of the whole conversation and the start of the next answer. Only the template's own text
  // names special tokens; a message's text never does.
  Result<std::vector<model::TokenId>> encode(const std::vector<model::ChatMessage>& messages) const;

 private:
  ChatEncoder(const model::Tokenizer& tokenizer, model::ChatTemplate chat_template)
      : tokenizer_(&tokenizer), template_(std::move(chat_template)) {}

  const model::Tokenizer* tokenizer_;
  model::ChatTemplate template_;
};

}  // namespace troika::cli
