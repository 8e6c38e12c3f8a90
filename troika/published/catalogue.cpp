#include "troika/published/catalogue.h"

namespace troika::published {

Result<std::vector<Paper>> find(std::string_view name) {
  std::vector<Paper> found;
  std::string known = "all";
  for (const EmbeddedJson& entry : papers()) {
    known += fmt::format(", {}", entry.name);
    if (name != "all" && name != entry.name) continue;
    ASSIGN_OR_RETURN(Paper paper, from_json(*entry.json));
    found.push_back(std::move(paper));
  }
  if (!found.empty()) return found;
  return make_error(ErrorCode::kNotFound, "no figures of '{}'; known: {}", name.substr(0, 60),
                    known);
}

}  // namespace troika::published
