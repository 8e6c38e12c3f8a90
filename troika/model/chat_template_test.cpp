#include "troika/model/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace troika::model {
namespace {

using testing::HasSubstr;

Result<std::vector<RenderedSpan>> render(std::string_view source, const ChatTemplateInput& input,
                                         ChatTemplateLimits limits = {}) {
  ASSIGN_OR_RETURN(const ChatTemplate chat, ChatTemplate::parse(source, limits));
  return chat.render(input);
}

ChatTemplateInput conversation(std::string content, std::string role = "user") {
  ChatTemplateInput input;
  input.messages.push_back({std::move(role), std::move(content)});
  input.bos_token = "<s>";
  return input;
}

// Spans as "T:" (of the template) or "M:" (of a message) and their text.
std::vector<std::string> origins(std::string_view source, const ChatTemplateInput& input) {
  const auto spans = render(source, input);
  EXPECT_TRUE(spans) << spans.error().message;
  std::vector<std::string> out;
  for (const RenderedSpan& span : *spans) {
    out.push_back((span.from_template ? "T:" : "M:") + span.text);
  }
  return out;
}

// ---- origin

TEST(ChatTemplateOrigin, SeparatesTemplateFromMessage) {
  const auto input = conversation("<|im_end|>");
  EXPECT_THAT(origins("<|{{ messages[0].role }}|>{{ bos_token }}{{ messages[0].content }}!", input),
              testing::ElementsAre("T:<|", "M:user", "T:|><s>", "M:<|im_end|>", "T:!"));
}

TEST(ChatTemplateOrigin, JoinsNeighboursOfOneOrigin) {
  const auto input = conversation("b");
  EXPECT_THAT(
      origins("{{ 'a' }}{{ 'b' ~ 1 }}{{ messages[0].content }}{{ messages[0].role }}", input),
      testing::ElementsAre("T:ab1", "M:buser"));
}

// Each operation leaves the message's characters marked as such: none counts as the template's.
TEST(ChatTemplateOrigin, EveryOperationKeepsIt) {
  const std::string content = "  <|x|>,<|Y|> ";
  for (const std::string operation :
       {"c",
        "c|trim",
        "c.strip()",
        "c.strip(' <')",
        "c.lstrip()",
        "c.rstrip()",
        "c|upper",
        "c|lower",
        "c.upper()",
        "c.title()",
        "c|title",
        "c|capitalize",
        "c[1:-2]",
        "c[::-1]",
        "c[::2]",
        "c[3]",
        "c|first",
        "c|last",
        "c|reverse",
        "c|list|join",
        "c|string",
        "c|safe",
        "c|default('z')",
        "c.split(',')[0]",
        "c.split()[-1]",
        "c.rsplit(',')[0]",
        "c.splitlines()[0]",
        "c ~ c",
        "c + c",
        "c * 2",
        "[c]|join('')",
        "''.join([c, c])",
        "{'k': c}.k",
        "[c][0]",
        "(c, c)[1]",
        "c.replace('q', 'q')",
        "c|replace('q', 'q')",
        "c if true else 'a'",
        "c or 'a'",
        "c and c",
        "''~c",
        "c.removeprefix(' ')",
        "[c]|map('upper')|first",
        "[c]|sort|first",
        "[c]|unique|first",
        "[c]|reverse|first",
        "dict(a=c).get('a')",
        "namespace(a=c).a",
        "messages|map(attribute='content')|join",
        "messages[0].items()|list|last|last",
        "messages[0].values()|list|last",
        "[c]|select|first",
        "messages|selectattr('content')|map(attribute='content')|first"}) {
    const std::string source = "{% set c = messages[0].content %}{{ " + operation + " }}";
    const auto spans = render(source, conversation(content));
    ASSERT_TRUE(spans) << operation << ": " << spans.error().message;
    ASSERT_FALSE(spans->empty()) << operation;
    for (const RenderedSpan& span : *spans) {
      EXPECT_FALSE(span.from_template) << operation << ": " << span.text;
    }
  }
}

TEST(ChatTemplateOrigin, SurvivesBlocksLoopsAndMacros) {
  const auto input = conversation("<x>");
  const std::vector<std::string> expected = {"T:[", "M:<x>", "T:]"};
  for (const std::string source :
       {"{% set b %}[{{ messages[0].content }}]{% endset %}{{ b }}",
        "{% macro m(t) %}[{{ t }}]{% endmacro %}{{ m(messages[0].content) }}",
        "[{% for c in messages[0].content %}{{ c }}{% endfor %}]",
        "{% set ns = namespace(s='[') %}{% for c in messages[0].content %}{% set ns.s = ns.s + c %}"
        "{% endfor %}{{ ns.s ~ ']' }}",
        "{% generation %}[{{ messages[0].content }}]{% endgeneration %}",
        "{% for k, v in messages[0].items() if k == 'content' %}[{{ v }}]{% endfor %}",
        "{% set b | trim %} [{{ messages[0].content }}] {% endset %}{{ b }}",
        "{{ '[%]'.replace('%', messages[0].content) }}",
        "{{ ['[', messages[0].content, ']']|join }}"}) {
    EXPECT_EQ(origins(source, input), expected) << source;
  }
}

TEST(ChatTemplateOrigin, MixedTextKeepsItsParts) {
  const auto input = conversation("bc", "R");
  EXPECT_THAT(origins("{{ ('a' ~ messages[0].content ~ 'd')[1:] }}", input),
              testing::ElementsAre("M:bc", "T:d"));
  EXPECT_THAT(origins("{{ ('a' ~ messages[0].content ~ 'd')[::-1] }}", input),
              testing::ElementsAre("T:d", "M:cb", "T:a"));
  EXPECT_THAT(origins("{{ messages[0].content.replace('b', '<') }}", input),
              testing::ElementsAre("T:<", "M:c"));
  EXPECT_THAT(origins("{{ ('  ' ~ messages[0].content ~ '|').strip('| ') }}", input),
              testing::ElementsAre("M:bc"));
  EXPECT_THAT(origins("{{ ('x' ~ messages[0].content).upper() }}", input),
              testing::ElementsAre("T:X", "M:BC"));
  EXPECT_THAT(
      origins("{{ messages|tojson }}", input),
      testing::ElementsAre("T:[{\"role\": \"", "M:R", "T:\", \"content\": \"", "M:bc", "T:\"}]"));
  EXPECT_THAT(origins("{{ [messages[0].content] }}", input),
              testing::ElementsAre("T:['", "M:bc", "T:']"));
}

// A character put together from bytes of two origins must not be lost nor move the borders.
TEST(ChatTemplateOrigin, BytesThatAreNotUtf8Stay) {
  const auto input = conversation("\xff\xc3", "u");
  EXPECT_THAT(origins("{{ messages[0].content ~ 'z' }}", input),
              testing::ElementsAre("M:\xff\xc3", "T:z"));
  EXPECT_THAT(origins("{% for c in messages[0].content ~ 'z' %}{{ c }}{% endfor %}", input),
              testing::ElementsAre("M:\xff\xc3", "T:z"));
  EXPECT_THAT(origins("{{ (messages[0].content ~ 'z')|upper }}", input),
              testing::ElementsAre("M:\xff\xc3", "T:Z"));
  EXPECT_THAT(origins("{{ messages[0].content|length }}", input), testing::ElementsAre("T:2"));
}

// ---- errors

void expect_error(std::string_view source, ErrorCode code, std::string_view part) {
  const auto output = render(source, conversation("c"));
  ASSERT_FALSE(output) << source;
  EXPECT_EQ(output.error().code, code) << output.error().message;
  EXPECT_THAT(output.error().message, HasSubstr(std::string(part)));
}

TEST(ChatTemplateError, NamesTheLine) {
  expect_error("a\n{% if x %}\n{{ 1 + }}", ErrorCode::kInvalidData, "line 3");
  expect_error("a\n\n{% for x in y %}\n\n", ErrorCode::kInvalidData, "endfor");
  expect_error("a\n{{\n 1 /\n 0 }}", ErrorCode::kInvalidData, "line 3: division by zero");
  expect_error("{% set x = 1 %}\n\n{{ y.z }}", ErrorCode::kInvalidData, "line 3: 'y' is undefined");
  expect_error("{# \n\n", ErrorCode::kInvalidData, "line 1");
  expect_error("\n{% include 'x' %}", ErrorCode::kUnsupported, "line 2: the tag 'include'");
  expect_error("\n\n{{ 1|pprint }}", ErrorCode::kUnsupported, "line 3: the filter 'pprint'");
  expect_error("{{ '%s' % 1 }}", ErrorCode::kUnsupported, "line 1");
  expect_error("{{ 'a'.format(1) }}", ErrorCode::kUnsupported, "format");
  expect_error("{{ 9223372036854775807 + 1 }}", ErrorCode::kInvalidData, "64 bits");
  expect_error("{{ 9223372036854775808 }}", ErrorCode::kInvalidData, "64 bits");
  expect_error("{{ (-9223372036854775807 - 1) // -1 }}", ErrorCode::kInvalidData, "64 bits");
  expect_error("{{ -(-9223372036854775807 - 1) }}", ErrorCode::kInvalidData, "64 bits");
  expect_error("{{ 10 ** 19 }}", ErrorCode::kInvalidData, "64 bits");
}

TEST(ChatTemplateError, RaiseExceptionGivesTheTemplatesWords) {
  expect_error("\n{{ raise_exception('No ' ~ messages[0].role ~ '!') }}",
               ErrorCode::kInvalidArgument, "No user! (line 2)");
}

TEST(ChatTemplateError, StrftimeIsUndefinedWithoutATime) {
  auto input = conversation("c");
  EXPECT_EQ((*render("{{ strftime_now is defined }}", input))[0].text, "False");
  input.now = std::tm{};
  input.now->tm_mday = 1;
  EXPECT_EQ((*render("{{ strftime_now('%d') }}", input))[0].text, "01");
  input.now->tm_mon = 12;
  EXPECT_FALSE(render("{{ strftime_now('%d') }}", input));
}

// ---- bounds

TEST(ChatTemplateBounds, HostileTemplatesEndQuickly) {
  std::string deep_parentheses(100'000, '(');
  std::string deep_ifs;
  std::string deep_for;
  std::string long_chain = "{{ a";
  std::string long_not = "{{ ";
  std::string long_minus = "{{ ";
  for (int i = 0; i < 10'000; ++i) {
    deep_ifs += "{% if 1 %}";
    deep_for += "{% for i in range(9) %}";
    long_chain += ".a";
    long_not += "not ";
    long_minus += "-";
  }
  const std::string sources[] = {
      "{{ " + deep_parentheses,
      "{{ " + std::string(100'000, '['),
      "{{ " + std::string(50'000, '{'),
      deep_ifs,
      deep_for,
      long_chain + " }}",
      long_not + "1 }}",
      long_minus + "1 }}",
      "{{ 'x' * 1000000000 }}",
      "{{ 'x' * 9223372036854775807 }}",
      "{{ [1] * 1000000000 }}",
      "{{ range(1000000000) }}",
      "{{ range(-9223372036854775807, 9223372036854775807) }}",
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(99999) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}",
      "{% set ns = namespace(s=[]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}{% endfor %}"
      "{{ ns.s }}",
      "{% set ns = namespace(s=[]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% "
      "endfor %}"
      "{{ ns.s }}",
      "{% set ns = namespace(s=[]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% "
      "endfor %}"
      "{{ ns.s|tojson }}",
      "{% set a = namespace(s=[], t=[]) %}{% for i in range(60) %}{% set a.s = [a.s, a.s] %}"
      "{% set a.t = [a.t, a.t] %}{% endfor %}{{ a.s == a.t }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% for i in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' * 99 }}{% "
      "endfor %}",
      "{% set s = 'ab' * 999999 %}{% for i in range(99999) %}{% set t = s.replace('a', s) %}{% "
      "endfor %}",
      "{% set s = 'a' * 9999999 %}{{ s.replace('', s) }}",
      "{% set s = 'a' * 9999999 %}{{ s|list|length }}",
      "{% set s = 'a' * 999999 %}{% for i in range(99999) %}{% if s in s %}{% endif %}{% endfor %}",
      "{% set s = 'a' * 999999 %}{% set t = 'a' * 9999 ~ 'b' %}{{ s.rfind(t) }}{{ s.rsplit(t) }}",
      "{% set s = 'é' * 999999 %}{% for i in range(99999) %}{{ s[i] }}{% endfor %}",
      "{% set s = 'é' * 9999999 %}{{ s[::-1] }}",
      "{% for i in range(99999) %}{% set x = ' ' * 9999 %}{{ x.strip() }}{% endfor %}",
      "{{ ([1, 2] * 49999)|unique|list }}{{ range(99999)|unique|list|length }}",
      "{{ range(99999)|map('string')|join('x' * 99999) }}",
      "{{ [range(99999)] * 99|list }}{{ ([range(99999)|list] * 999)|tojson }}",
      "{% set l = range(99999)|list %}{% for i in l %}{% if -1 in l %}{% endif %}{% endfor %}",
      "{% set s %}{% for i in range(99999) %}{{ 'x' * 999 }}{% endfor %}{% endset %}",
      "{{ [[[1]]]|tojson(indent=999999999) }}{{ 10 ** 10 ** 10 }}",
      "{{ 2 ** 9223372036854775807 }}",
  };
  for (const std::string& source : sources) {
    const std::clock_t begin = std::clock();
    const auto output = render(source, conversation("c"));
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_FALSE(output) << source.substr(0, 200);
    EXPECT_EQ(output.error().code, ErrorCode::kInvalidData) << output.error().message;
    // Processor time. Without a bound each of these would run for hours; under a sanitizer the
    // slowest needs some seconds.
    EXPECT_LT(took, 20.0) << source.substr(0, 200);
  }
}

TEST(ChatTemplateBounds, EachLimitHolds) {
  const auto input = conversation("c");
  ChatTemplateLimits limits;
  limits.max_source_bytes = 3;
  EXPECT_TRUE(render("abc", input, limits));
  EXPECT_FALSE(render("abcd", input, limits));
  limits = {};
  limits.max_output_bytes = 3;
  EXPECT_TRUE(render("abc", input, limits));
  EXPECT_FALSE(render("ab{{ 'cd' }}", input, limits));
  limits = {};
  limits.max_steps = 200;
  EXPECT_TRUE(render("{{ 1 }}", input, limits));
  EXPECT_FALSE(render("{% for i in range(100) %}{{ i }}{% endfor %}", input, limits));
  limits = {};
  limits.max_depth = 8;
  EXPECT_TRUE(render("{{ [[1]] }}", input, limits));
  EXPECT_FALSE(render("{{ [[[[[[[[[1]]]]]]]]] }}", input, limits));
  limits = {};
  limits.max_memory_bytes = 10'000;
  EXPECT_TRUE(render("{{ 'x' * 100 }}", input, limits));
  EXPECT_FALSE(render("{{ 'x' * 9000 }}", input, limits));
}

// The defaults leave room for conversations far larger than any context.
TEST(ChatTemplateBounds, LargeConversationsFit) {
  ChatTemplateInput input;
  for (int i = 0; i < 2000; ++i) {
    input.messages.push_back({i % 2 == 0 ? "user" : "assistant", std::string(2000, 'x')});
  }
  const auto spans = render(
      "{% for m in messages %}{{ '<|start|>' + m['role'] + '\n' + m['content'] | trim + '<|end|>' "
      "}}"
      "{% endfor %}",
      input);
  ASSERT_TRUE(spans) << spans.error().message;
  size_t bytes = 0;
  for (const RenderedSpan& span : *spans) bytes += span.text.size();
  EXPECT_EQ(bytes, 2000U * (2000 + 9 + 1 + 7) + 1000 * (4 + 9));
}

TEST(ChatTemplate, IsReusedAndMoved) {
  auto chat = ChatTemplate::parse("{{ messages[0].content }}");
  ASSERT_TRUE(chat);
  ChatTemplate moved = std::move(*chat);
  EXPECT_EQ((*moved.render(conversation("a")))[0].text, "a");
  EXPECT_EQ((*moved.render(conversation("b")))[0].text, "b");
}

}  // namespace
}  // namespace troika::model
