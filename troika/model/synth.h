// Writes a GGUF file of a model with random weights: for tests and for measuring speed without a
// download. What it generates is letters without sense.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "troika/base/result.h"
#include "troika/model/model.h"
#include "troika/model/model_shape.h"
#include "troika/model/weight_mix.h"

namespace troika::model {

struct SynthOptions {
  ModelShape shape;
  WeightMix mix;  // of the matrices; vectors are F32
  // The same seed, shape and mix give the same bytes on every machine.
  uint64_t seed = 1;
  // Called with bytes done and in all; false cancels.
  std::function<bool(uint64_t, uint64_t)> progress;
};

// Size of the file's weights, padding included.
Result<uint64_t> synthetic_model_bytes(const SynthOptions& options);

// Needs little memory whatever the size. Nothing is left behind on failure.
Status write_synthetic_model(const std::string& path, const SynthOptions& options);

// The model that would be read from such a file, without weights' data (LoadOptions::sizes_only):
// what a pass of it costs can be planned without writing it.
Result<Model> outline_model(const SynthOptions& options);

}  // namespace troika::model
