// Whether the facts of a description can be true together.
#pragma once

#include "troika/base/result.h"
#include "troika/soc/soc.h"

namespace troika::soc {

// kInvalidData naming the field: two units or stacks of one name, faster than the memory allows,
// paths that overlap, types that do not exist, stacks of units that do not exist.
Status validate(const Soc& soc);

// Bits of a type's weights: 4 for "w4a16"; nullopt if it is no type.
std::optional<int> weight_bits(std::string_view type);

}  // namespace troika::soc
