// A conversation with a model: the messages so far, and the session that holds their KV.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/prompt.h"
#include "troika/engine/engine.h"

namespace troika::cli {

// Borrows the engine. Not shared between threads.
class Conversation {
 public:
  static Result<Conversation> create(engine::Engine& engine, const std::string& template_file,
                                     const std::string& system,
                                     const engine::GenerateOptions& options);

  // Adds a message of the user and the model's answer to it. On failure the conversation is as
  // before; kContextFull tells both counts.
  Result<engine::Answer> say(const std::string& message,
                             const std::function<bool(std::string_view)>& on_text,
                             const std::atomic<bool>* cancel);

  // Forgets everything but the system message.
  void reset();

  const std::vector<model::ChatMessage>& messages() const { return messages_; }

 private:
  Conversation(ChatEncoder encoder, std::unique_ptr<engine::Session> session, std::string system,
               const engine::GenerateOptions& options);

  ChatEncoder encoder_;
  std::unique_ptr<engine::Session> session_;
  std::string system_;
  engine::GenerateOptions options_;
  std::vector<model::ChatMessage> messages_;
};

}  // namespace troika::cli
