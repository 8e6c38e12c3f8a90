#include "web/profile.h"

#include <array>
#include <utility>

namespace troika::web {

extern const std::string_view kProfilePage;
extern const std::string_view kProfileStyle;
extern const std::string_view kProfileScript;

std::string profile_page(std::string_view title, std::string_view data) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> parts = {
      {{"@TITLE@", title},
       {"@STYLE@", kProfileStyle},
       {"@DATA@", data},
       {"@SCRIPT@", kProfileScript}}};
  std::string page;
  page.reserve(kProfilePage.size() + kProfileStyle.size() + kProfileScript.size() + data.size());
  // Each is looked for in the page itself and not in what was put in.
  size_t at = 0;
  for (const auto& [mark, text] : parts) {
    const size_t found = kProfilePage.find(mark, at);
    page.append(kProfilePage.substr(at, found - at)).append(text);
    at = found + mark.size();
  }
  return page.append(kProfilePage.substr(at));
}

}  // namespace troika::web
