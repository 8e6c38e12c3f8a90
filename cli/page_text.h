// Texts that go into HTML pages.
#pragma once

#include <string>

namespace troika::cli {

// JSON inside a <script>: nothing in it may look like markup.
std::string script_safe(const std::string& json);

std::string html_escaped(const std::string& text);

}  // namespace troika::cli
