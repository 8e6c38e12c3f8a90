// llama.cpp's short flags of several letters, which the option parser takes for bundles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troika::cli {

// "--cache-type-k" for "-ctk"; empty for anything else.
std::string_view long_name(std::string_view short_name);
// {"-ctk"} for "--cache-type-k".
std::vector<std::string> short_names(std::string_view long_name);

}  // namespace troika::cli
