#include "web/timeline.h"

#include <array>
#include <utility>

namespace troika::web {

extern const std::string_view kPage;
extern const std::string_view kStyle;
extern const std::string_view kScript;

std::string timeline_page(std::string_view title, std::string_view data) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> parts = {
      {{"@TITLE@", title}, {"@STYLE@", kStyle}, {"@DATA@", data}, {"@SCRIPT@", kScript}}};
  std::string page;
  page.reserve(kPage.size() + kStyle.size() + kScript.size() + title.size() + data.size());
  // In the order of the page, each looked for in the page itself and not in what was put in.
  size_t at = 0;
  for (const auto& [mark, text] : parts) {
    const size_t found = kPage.find(mark, at);
    page.append(kPage.substr(at, found - at)).append(text);
    at = found + mark.size();
  }
  return page.append(kPage.substr(at));
}

}  // namespace troika::web
