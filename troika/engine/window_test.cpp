// A context within the attention window of a model is computed as it should be; a longer one is
// refused, since the window does not slide.
#include <gtest/gtest.h>

#include "troika/engine/engine.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

constexpr uint32_t kTrained = 128;  // TinyModel's

Result<std::unique_ptr<Engine>> open(uint32_t window, int64_t context) {
  model::testing::TinyModel tiny;
  tiny.metadata["llama.attention.sliding_window"] = window;
  const std::string path = ::testing::TempDir() + "window_test.gguf";
  const std::vector<std::byte> bytes = tiny.bytes();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  ASSIGN_OR_RETURN(model::Model model, model::Model::load(path));
  EngineOptions options;
  options.context = context;
  options.threads = 1;
  return Engine::create(std::move(model), options);
}

TEST(Window, ALongerContextIsRefusedByBothLengths) {
  for (const auto context : {int64_t{65}, int64_t{0}}) {
    const auto engine = open(64, context);
    ASSERT_FALSE(engine.has_value()) << context;
    EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
    const std::string length = std::to_string(context > 0 ? context : int64_t{kTrained});
    EXPECT_NE(engine.error().message.find("context of " + length), std::string::npos);
    EXPECT_NE(engine.error().message.find("window of 64"), std::string::npos);
  }
}

TEST(Window, AContextThatFitsIsTaken) {
  EXPECT_TRUE(open(64, 64).has_value());
  EXPECT_TRUE(open(kTrained, 0).has_value());
  EXPECT_TRUE(open(0, 0).has_value());  // no window
}

}  // namespace
}  // namespace troika::engine
