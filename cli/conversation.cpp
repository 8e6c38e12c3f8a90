#include "cli/conversation.h"

namespace troika::cli {

Result<Conversation> Conversation::create(engine::Engine& engine, const std::string& template_file,
                                          const std::string& system,
                                          const engine::GenerateOptions& options) {
  ASSIGN_OR_RETURN(ChatEncoder encoder, ChatEncoder::create(engine.model(), template_file));
  ASSIGN_OR_RETURN(auto session, engine.new_session());
  return Conversation(std::move(encoder), std::move(session), system, options);
}

Conversation::Conversation(ChatEncoder encoder, std::unique_ptr<engine::Session> session,
                           std::string system, const engine::GenerateOptions& options)
    : encoder_(std::move(encoder)),
      session_(std::move(session)),
      system_(std::move(system)),
      options_(options) {
  reset();
}

void Conversation::reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
}

Result<engine::Answer> Conversation::say(const std::string& message,
                                         const std::function<bool(std::string_view)>& on_text,
                                         const std::atomic<bool>* cancel) {
  std::vector<model::ChatMessage> messages = messages_;
  messages.push_back({"user", message});
  ASSIGN_OR_RETURN(const std::vector<model::TokenId> ids, encoder_.encode(messages));
  ASSIGN_OR_RETURN(engine::Answer answer, session_->generate(ids, options_, on_text, cancel));
  messages.push_back({"assistant", answer.text});
  messages_ = std::move(messages);
  return answer;
}

}  // namespace troika::cli
