#include "cli/chip.h"

#include "cli/numbers.h"
#include "cli/text.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

Result<soc::Soc> read_soc(const std::string& name) {
  if (!is_file_name(name)) return soc::find(name);
  ASSIGN_OR_RETURN(const std::string text, read_text(name, kMaxFileBytes));
  return soc::from_json(text);
}

}  // namespace

Result<soc::Soc> load_soc(const std::string& name, const std::string& stack) {
  auto soc = read_soc(name);
  if (!soc)
    return make_error(soc.error().code, "--soc {}: {}", in_quotes(name), soc.error().message);
  soc = soc::with_stack(*soc, stack);
  if (!soc) return make_error(soc.error().code, "--stack: {}", soc.error().message);
  return soc;
}

}  // namespace troika::cli
