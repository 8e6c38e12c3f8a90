#include "troika/model/chat_template.h"

#include <utility>

#include "troika/model/jinja_interpreter.h"
#include "troika/model/jinja_parser.h"

namespace troika::model {

struct ChatTemplate::State {
  jinja::Body body;
  ChatTemplateLimits limits;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, ChatTemplateLimits limits) {
  if (source.size() > limits.max_source_bytes) {
    return make_error(ErrorCode::kInvalidData,
                      "the chat template has {} bytes, more than the {} that are allowed",
                      source.size(), limits.max_source_bytes);
  }
  ASSIGN_OR_RETURN(jinja::Body body, jinja::parse_template(source, limits.max_depth));
  return ChatTemplate(std::make_unique<State>(State{std::move(body), limits}));
}

Result<std::vector<RenderedSpan>> ChatTemplate::render(const ChatTemplateInput& input) const {
  return jinja::Interpreter(input, state_->limits).run(state_->body);
}

}  // namespace troika::model
