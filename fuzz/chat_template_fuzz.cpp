// Any bytes as a chat template: it must end quickly, within its bounds, and never give text of a
// message out as the template's own.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/model/chat_template.h"

namespace {

using namespace troika::model;

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

ChatTemplateLimits small_limits() {
  ChatTemplateLimits limits;
  limits.max_source_bytes = 4096;
  limits.max_steps = 20'000;
  limits.max_output_bytes = 64 * 1024;
  limits.max_memory_bytes = 1024 * 1024;
  return limits;
}

// The messages hold no ASCII, so that their characters are told apart in the output.
ChatTemplateInput conversation() {
  ChatTemplateInput input;
  input.messages = {{"\u00e9", "\u4e16 \u754c"}, {"\u03a3", ""}, {"\u00df", "\xff\xe4\xb8"}};
  for (ChatMessage& message : input.messages) {
    std::erase(message.content, ' ');
  }
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now.emplace();
  input.now->tm_mday = 1;
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto chat = ChatTemplate::parse(source, small_limits());
  if (!chat) return 0;
  static const ChatTemplateInput kInput = conversation();
  const auto spans = chat->render(kInput);
  if (!spans) return 0;
  const bool template_is_ascii = is_ascii(source) && source.find('\\') == std::string_view::npos;
  size_t total = 0;
  for (size_t i = 0; i < spans->size(); ++i) {
    const RenderedSpan& span = (*spans)[i];
    total += span.text.size();
    if (span.text.empty()) std::abort();
    if (i > 0 && (*spans)[i - 1].from_template == span.from_template) std::abort();
    if (span.from_template && template_is_ascii && !is_ascii(span.text)) std::abort();
  }
  if (total > small_limits().max_output_bytes) std::abort();
  return 0;
}
