// The page of `troika trace --html`: the texts of web/timeline/ put together.
#pragma once

#include <string>
#include <string_view>

namespace troika::web {

// `title` is HTML, `data` the JSON that web/timeline/data.js describes; both go in as they are.
std::string timeline_page(std::string_view title, std::string_view data);

}  // namespace troika::web
