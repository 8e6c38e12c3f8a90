#include "cli/options.h"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

int64_t context_of(int64_t flag, int64_t trained, int64_t window) {
  EngineFlags flags;
  flags.context = flag;
  model::HyperParameters model;
  model.n_ctx_train = trained;
  model.sliding_window = window;
  const auto options = flags.resolve(model);
  return options ? options->context : -1;
}

TEST(Context, WithoutAFlagIsTheModelsWithinTheLimitAndTheWindow) {
  EXPECT_EQ(context_of(-1, 2048, 0), 2048);
  EXPECT_EQ(context_of(-1, 131072, 0), kDefaultContextLimit);
  EXPECT_EQ(context_of(-1, 131072, 4096), 4096);
  EXPECT_EQ(context_of(-1, 2048, 4096), 2048);
}

TEST(Context, IsWhatTheFlagSays) {
  EXPECT_EQ(context_of(16384, 2048, 0), 16384);
  EXPECT_EQ(context_of(0, 2048, 0), 0);  // the engine takes what the model was trained for
  EXPECT_EQ(context_of(8192, 16384, 4096), 8192);  // the engine refuses it
}

}  // namespace
}  // namespace troika::cli
