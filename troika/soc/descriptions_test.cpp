// The descriptions that come with the program, as they stand.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/repository.h"
#include "troika/soc/catalogue.h"

namespace troika::soc {
namespace {

using nlohmann::json;

// Calls f(path, figure) for every number of a description.
template <class F>
void for_each_figure(const json& value, const std::string& path, const F& f) {
  if (value.is_object() && value.contains("source")) {
    f(path, value);
    return;
  }
  for (const auto& [key, child] : value.items()) {
    if (child.is_structured()) for_each_figure(child, path + "/" + key, f);
  }
}

TEST(Descriptions, ThoseThatUsersNameAreThereAndCanBe) {
  for (const char* name : {"snapdragon-8-gen-3", "snapdragon-8-elite", "snapdragon-x-elite",
                           "ryzen-ai-7-350", "ryzen-ai-9-hx-370", "ryzen-ai-max-395",
                           "core-ultra-5-125h", "core-ultra-7-258v", "apple-m4"}) {
    const auto soc = find(name);
    ASSERT_TRUE(soc.has_value()) << name << ": " << soc.error().message;
    EXPECT_EQ(soc->name, name);
    for (const Stack& stack : soc->stacks) {
      EXPECT_TRUE(with_stack(*soc, stack.name).has_value()) << name << ": " << stack.name;
    }
  }
}

TEST(Descriptions, NothingInThemIsKeyedByModelLengthOrStrategy) {
  const std::set<std::string> none = {"model", "shape", "prompt", "length", "strategy", "tok_s"};
  const std::function<void(const json&)> visit = [&](const json& value) {
    for (const auto& [key, child] : value.items()) {
      if (value.is_object()) {
        EXPECT_FALSE(none.contains(key)) << key;
      }
      if (child.is_structured()) visit(child);
    }
  };
  for (const Description& entry : descriptions()) visit(json::parse(*entry.json));
}

TEST(Descriptions, WhatTheRyzenChipsShareIsOneNumber) {
  std::map<std::string, std::set<double>> values;
  for (const char* name : {"ryzen-ai-7-350", "ryzen-ai-9-hx-370", "ryzen-ai-max-395"}) {
    std::ifstream in(repository_path(fmt::format("socs/{}.json", name)));
    for_each_figure(json::parse(in), "", [&](const std::string& path, const json& figure) {
      const std::string source = figure["source"];
      // Of a part that is shared, the value itself is the chip's own.
      const bool part = source.find(" of the ") < source.find("one number for the three");
      if (source.find("one number for the three") != std::string::npos && !part) {
        values[path].insert(figure["value"].get<double>());
      }
    });
  }
  EXPECT_GE(values.size(), 4u);
  for (const auto& [path, different] : values) EXPECT_EQ(different.size(), 1u) << path;
}

// A field of a real description made impossible is named with its path.
TEST(Descriptions, MadeImpossibleTheyAreRefusedWithThePath) {
  struct Change {
    const char* chip;
    const char* pointer;
    json value;
    const char* message;
  };
  const Change changes[] = {
      {"apple-m4", "/units/1/bandwidth/value", 500, "soc.units[1].bandwidth"},
      {"apple-m4", "/units/0/paths/0/rate/value", -1, "soc.units[0].paths[0].rate.value"},
      {"ryzen-ai-7-350", "/units/1/paths/1/row_tile/unit", "rows",
       "soc.units[1].paths[1].row_tile.unit"},
      {"ryzen-ai-7-350", "/units/1/speed_among_others/value", 1.5,
       "soc.units[1].speed_among_others.value"},
      {"ryzen-ai-7-350", "/units/2/quanta/tokens/source", "", "soc.units[2].quanta.tokens.source"},
      {"ryzen-ai-max-395", "/memory/reachable/value", 300, "soc.memory.reachable"},
      {"ryzen-ai-max-395", "/stacks/1/units/1", "dsp", "stacks[1]"},
      {"core-ultra-7-258v", "/stacks/0/strategy", "layer", "soc.stacks[0]"},
      {"snapdragon-8-elite", "/units/2/paths/0/to_tokens", 2, "soc.units[2].paths"},
      {"snapdragon-x-elite", "/idle_power/kind", "guessed", "soc.idle_power.kind"},
  };
  for (const Change& change : changes) {
    std::ifstream in(repository_path(fmt::format("socs/{}.json", change.chip)));
    json description = json::parse(in);
    description[json::json_pointer(change.pointer)] = change.value;
    const auto refused = from_json(description.dump());
    ASSERT_FALSE(refused.has_value()) << change.chip << change.pointer;
    EXPECT_NE(refused.error().message.find(change.message), std::string::npos)
        << refused.error().message;
  }
}

}  // namespace
}  // namespace troika::soc
