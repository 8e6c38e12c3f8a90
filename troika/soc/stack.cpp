// A chip under other software.
#include <algorithm>

#include "troika/soc/soc.h"

namespace troika::soc {
namespace {

// What units reach together, of units that there are.
void keep_known(const Soc& soc, std::vector<Together>& together) {
  std::erase_if(together, [&](const Together& one) {
    return std::any_of(one.units.begin(), one.units.end(),
                       [&](const std::string& name) { return !soc.unit(name); });
  });
}

}  // namespace

Result<Soc> with_stack(const Soc& soc, std::string_view stack) {
  if (stack == "default") return soc;
  std::string names = "default";
  for (const Stack& one : soc.stacks) {
    names += ", " + one.name;
    if (one.name != stack) continue;
    Soc other = soc;
    other.stack = one.description;
    if (one.sync) other.sync = *one.sync;
    if (one.pass_overhead) other.pass_overhead = one.pass_overhead;
    if (one.stored_weights) other.stored_weights = one.stored_weights;
    other.units.clear();
    for (const StackUnit& unit : one.units) {
      const auto own = soc.unit(unit.name);
      if (!unit.unit && !own) {
        return make_error(ErrorCode::kNotFound, "stack {}: no unit is called {}", one.name,
                          unit.name);
      }
      other.units.push_back(unit.unit ? *unit.unit : soc.units[*own]);
    }
    keep_known(other, other.memory.together);
    other.stacks.clear();
    return other;
  }
  return make_error(ErrorCode::kNotFound, "{} has no stack '{}'; stacks: {}", soc.name,
                    stack.substr(0, 60), names);
}

}  // namespace troika::soc
