#include "troika/soc/catalogue.h"

namespace troika::soc {

Result<Soc> find(std::string_view name) {
  std::string known;
  for (const Description& description : descriptions()) {
    if (description.name == name) return from_json(*description.json);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", description.name);
  }
  return make_error(ErrorCode::kNotFound, "no description of this chip; known: {}", known);
}

}  // namespace troika::soc
