// The descriptions that come with the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troika/base/embedded_json.h"
#include "troika/base/result.h"
#include "troika/soc/soc.h"

namespace troika::soc {

using Description = EmbeddedJson;

// In order of their names; the build embeds socs/*.json.
const std::vector<Description>& descriptions();

// The description of this name. kNotFound with the names that there are.
Result<Soc> find(std::string_view name);

}  // namespace troika::soc
