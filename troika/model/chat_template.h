// The chat template of a GGUF file: from messages to the text that the model was trained on.
//
// Evaluates the part of Jinja that the templates of the supported models use. A template comes from
// a file and is hostile until checked: steps, depth, and output are bounded. Every character of the
// output remembers whether it came from the template or from a message, so that text typed by a
// user never becomes a control token.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", ...
  std::string content;
};

struct ChatTemplateInput {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token;  // names of the special tokens, for the template's variables
  std::string eos_token;
  // The local time that strftime_now() prints; unset: the template finds strftime_now undefined.
  std::optional<std::tm> now;
};

// Bounds on one rendering; the defaults are far above what real templates need.
struct ChatTemplateLimits {
  size_t max_source_bytes = 256 * 1024;
  size_t max_steps = 1'000'000;  // evaluated nodes
  size_t max_depth = 64;         // nesting of blocks and expressions, when parsed and when run
  size_t max_output_bytes = 8 * 1024 * 1024;
  size_t max_memory_bytes = 40 * 1024 * 1024;  // all values that one rendering makes
};

// A run of output text of one origin; template text may name special tokens, message text may not.
struct RenderedSpan {
  std::string text;
  bool from_template = false;
};

// Immutable after parse(); any thread may use it.
class ChatTemplate {
 public:
  // kInvalidData with the line and what was not understood; kUnsupported for Jinja that is not
  // evaluated here. Never falls back to another template.
  static Result<ChatTemplate> parse(std::string_view source, ChatTemplateLimits limits = {});
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // kInvalidArgument with the template's own words if it calls raise_exception; kInvalidData when a
  // bound is reached or the template is wrong.
  Result<std::vector<RenderedSpan>> render(const ChatTemplateInput& input) const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troika::model
