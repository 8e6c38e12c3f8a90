#include "cli/prompt.h"

#include <unistd.h>

#include "cli/text.h"

namespace troika::cli {

void PromptFlags::declare(Flags& flags) {
  flags.begin_group("Prompt");
  flags.text("-p,--prompt", prompt, "TEXT", "The text");
  flags.file("-f,--file", file, "Read the text from a file; '-' is standard input");
  flags.toggle("-e,--escape", escape, "Read \\n, \\t, \\\\, \\xHH in -p as what they stand for");
}

Result<std::string> PromptFlags::read(const Flags& flags) const {
  const bool has_prompt = flags.given("--prompt");
  if (has_prompt && flags.given("--file")) {
    return make_error(ErrorCode::kInvalidArgument,
                      "both --prompt and --file are given; give one of them");
  }
  if (has_prompt) return escape ? unescape(prompt) : prompt;
  if (flags.given("--file")) return read_text(file);
  if (isatty(STDIN_FILENO) == 0) return read_text("-");
  return make_error(ErrorCode::kInvalidArgument,
                    "no text given; use -p TEXT, -f FILE, or pipe it in");
}

std::vector<model::TokenId> encode_raw(const model::Tokenizer& tokenizer, std::string_view text,
                                       bool parse_special, bool add_bos) {
  std::vector<model::TokenId> ids = tokenizer.encode(text, parse_special);
  const auto bos = tokenizer.bos();
  if (add_bos && tokenizer.add_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

Result<ChatEncoder> ChatEncoder::create(const model::Model& model,
                                        const std::string& template_file) {
  std::string source = model.chat_template_source();
  if (!template_file.empty()) {
    ASSIGN_OR_RETURN(source, read_text(template_file));
  }
  if (source.empty()) {
    return make_error(ErrorCode::kUnsupported,
                      "{} has no chat template; give one with --chat-template-file, or use "
                      "'troika run --raw'",
                      in_quotes(model.path()));
  }
  ASSIGN_OR_RETURN(model::ChatTemplate chat_template, model::ChatTemplate::parse(source));
  return ChatEncoder(model.tokenizer(), std::move(chat_template));
}

Result<std::vector<model::TokenId>> ChatEncoder::encode(
    const std::vector<model::ChatMessage>& messages) const {
  const auto name = [this](std::optional<model::TokenId> id) {
    return id ? std::string(tokenizer_->name(*id)) : std::string();
  };
  model::ChatTemplateInput input;
  input.messages = messages;
  input.bos_token = name(tokenizer_->bos());
  input.eos_token = name(tokenizer_->eos());
  ASSIGN_OR_RETURN(const std::vector<model::RenderedSpan> rendered, template_.render(input));
  std::vector<model::TextSpan> spans;
  for (const model::RenderedSpan& span : rendered) {
    spans.push_back({span.text, span.from_template});
  }
  std::vector<model::TokenId> ids = tokenizer_->encode(spans);
  const auto bos = tokenizer_->bos();
  if (tokenizer_->add_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace troika::cli
