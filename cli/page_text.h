// Texts that go into HTML pages.
#pragma once

#include <string>
#include <string_view>

namespace troika::cli {

// JSON inside a <script>: nothing in it may look like markup.
std::string script_safe(const std::string& json);

// As text or as an attribute in double quotes.
std::string html_escaped(std::string_view text);

}  // namespace troika::cli
