// Against recorded results of Jinja2 (tests/reference/record_chat_templates.py), byte for byte.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/repository.h"
#include "troika/model/chat_template.h"
#include "troika/model/gguf.h"

namespace troika::model {
namespace {

using nlohmann::json;

json read_golden(const std::string& name) {
  std::ifstream file(repository_path("tests/golden/") + name);
  return json::parse(file);
}

std::vector<ChatMessage> messages_of(const json& list) {
  std::vector<ChatMessage> out;
  for (const json& one : list) out.push_back({one["role"], one["content"]});
  return out;
}

std::tm recorded_time() {
  std::tm out{};
  out.tm_year = 2025 - 1900;
  out.tm_mon = 2;
  out.tm_mday = 7;
  out.tm_hour = 14;
  out.tm_min = 5;
  out.tm_sec = 9;
  out.tm_wday = 5;
  out.tm_yday = 65;
  return out;
}

std::string joined(const std::vector<RenderedSpan>& spans) {
  std::string out;
  for (const RenderedSpan& span : spans) out += span.text;
  return out;
}

// Renders and compares with what was recorded: the output, the refusal's words, or an error.
void expect_recorded(std::string_view source, const ChatTemplateInput& input,
                     const json& recorded) {
  auto chat = ChatTemplate::parse(source);
  const auto output =
      chat ? chat->render(input) : Result<std::vector<RenderedSpan>>(tl::unexpected(chat.error()));
  if (recorded.contains("output")) {
    ASSERT_TRUE(output) << output.error().message << "\n" << source;
    EXPECT_EQ(joined(*output), recorded["output"].get<std::string>()) << source;
    return;
  }
  ASSERT_FALSE(output) << "rendered " << joined(*output) << "\n" << source;
  EXPECT_NE(output.error().message.find("line "), std::string::npos) << output.error().message;
  if (recorded.contains("refused")) {
    EXPECT_EQ(output.error().code, ErrorCode::kInvalidArgument) << output.error().message;
    const std::string words = recorded["refused"];
    EXPECT_NE(output.error().message.find(words), std::string::npos) << output.error().message;
  } else {
    EXPECT_TRUE(output.error().code == ErrorCode::kInvalidData ||
                output.error().code == ErrorCode::kUnsupported)
        << output.error().message;
  }
}

TEST(ChatTemplateGolden, RendersConversationsAsJinja2Does) {
  const json golden = read_golden("chat-templates.json");
  size_t count = 0;
  for (const json& recorded : golden["templates"]) {
    std::string source = recorded.value("source", "");
    if (recorded.contains("model")) {
      const auto file = read_gguf_file(repository_path(recorded["model"].get<std::string>()));
      ASSERT_TRUE(file) << file.error().message;
      const auto own = file->get_string("tokenizer.chat_template");
      ASSERT_TRUE(own && *own);
      source = **own;
    }
    for (const json& result : recorded["results"]) {
      const std::string conversation = result["conversation"];
      SCOPED_TRACE(recorded["name"].get<std::string>() + ", " + conversation);
      ChatTemplateInput input;
      input.messages = messages_of(golden["conversations"][conversation]);
      input.add_generation_prompt = result["add_generation_prompt"];
      input.bos_token = recorded["bos_token"];
      input.eos_token = recorded["eos_token"];
      input.now = recorded_time();
      expect_recorded(source, input, result);
      ++count;
    }
  }
  EXPECT_GT(count, 300U);
}

TEST(ChatTemplateGolden, RendersSnippetsAsJinja2Does) {
  const json golden = read_golden("jinja-snippets.json");
  ChatTemplateInput input;
  input.messages = messages_of(golden["messages"]);
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now = recorded_time();
  for (const json& one : golden["cases"]) {
    expect_recorded(one["source"].get<std::string>(), input, one);
  }
  EXPECT_GT(golden["cases"].size(), 600U);
}

}  // namespace
}  // namespace troika::model
