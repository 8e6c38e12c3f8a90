// The page of `troika profile --html`: the texts of web/profile/ put together.
#pragma once

#include <string>
#include <string_view>

namespace troika::web {

// `title` is HTML, `data` a profile's JSON in which nothing looks like markup; both go in as they
// are.
std::string profile_page(std::string_view title, std::string_view data);

}  // namespace troika::web
