// Devices that do not open: whose fault it is, and what follows.
#include <gtest/gtest.h>

#include "troika/engine/engine.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

struct Opened {
  Result<std::unique_ptr<Engine>> engine;
  std::vector<std::string> warnings;
};

// With a probe that gives `refusal` for everything but cpu.
Opened open(const std::string& devices, const Error& refusal) {
  Opened opened;
  EngineOptions options;
  options.devices = devices;
  options.context = 64;
  options.batch_rows = 16;
  options.probe = [&](const std::string&) -> Status { return tl::unexpected<Error>(refusal); };
  options.warn = [&](const std::string& line) { opened.warnings.push_back(line); };
  const auto bytes = model::testing::TinyModel().bytes();
  opened.engine =
      Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}), options);
  return opened;
}

TEST(RefusedDevices, ADriverThatIsMissingIsLeftOut) {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kUnsupported, ErrorCode::kIo}) {
    const Opened some = open("cpu@0,systolic", {code, "no driver"});
    ASSERT_TRUE(some.engine.has_value()) << some.engine.error().message;
    EXPECT_EQ((*some.engine)->devices().size(), 1u);
    EXPECT_EQ(some.warnings, std::vector<std::string>{
                                 "device systolic is put aside: no driver; going on with cpu@0"});
    const Opened none = open("faulty:slow@1:systolic", {code, "no driver"});
    ASSERT_TRUE(none.engine.has_value()) << none.engine.error().message;
    EXPECT_EQ((*none.engine)->devices().front()->info().name, "cpu");
  }
}

TEST(RefusedDevices, WhatCannotBeMeantIsAnError) {
  const Opened unknown = open("cpu@0,abacus", {ErrorCode::kNotFound, "no abacus"});
  ASSERT_FALSE(unknown.engine.has_value());
  EXPECT_EQ(unknown.engine.error().message, "no abacus");
  EXPECT_FALSE(open("cpu@0,faulty:nan@1:abacus", {ErrorCode::kNotFound, ""}).engine.has_value());
  EXPECT_FALSE(open("cpu@0,systolic@0", {ErrorCode::kInvalidArgument, ""}).engine.has_value());
}

TEST(RefusedDevices, AnInterruptedProbeEndsLoading) {
  const Opened stopped = open("cpu@0,systolic", {ErrorCode::kCancelled, "interrupted"});
  ASSERT_FALSE(stopped.engine.has_value());
  EXPECT_EQ(stopped.engine.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(stopped.warnings.empty());
}

}  // namespace
}  // namespace troika::engine
