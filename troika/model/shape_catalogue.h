// Shapes of published models, as they stand in shapes/*.json, and the reader of such files.
#pragma once

#include <string_view>
#include <vector>

#include "troika/base/embedded_json.h"
#include "troika/base/result.h"
#include "troika/model/model_shape.h"

namespace troika::model {

inline constexpr size_t kMaxShapeBytes = 16384;

// In order of their names; the build embeds shapes/*.json.
const std::vector<EmbeddedJson>& embedded_shapes();

// The same, read once.
const std::vector<ModelShape>& known_shapes();

// A shape of any bytes: kInvalidData naming the field, kUnsupported for another version.
Result<ModelShape> shape_from_json(std::string_view text);

}  // namespace troika::model
