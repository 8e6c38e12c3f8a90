// The published figures that come with the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troika/base/embedded_json.h"
#include "troika/base/result.h"
#include "troika/published/paper.h"

namespace troika::published {

// In order of their names; the build embeds published/*.json.
const std::vector<EmbeddedJson>& papers();

// The figures of this paper; "all": of every one. kNotFound with the names that there are.
Result<std::vector<Paper>> find(std::string_view name);

}  // namespace troika::published
