#include "troika/forecast/error_band.h"

#include "troika/soc/fields.h"

namespace troika::forecast {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxBands = 256;

}  // namespace

Result<std::optional<ErrorBand>> error_band_from(std::string_view json, std::string_view soc,
                                                 std::string_view stack) {
  using soc::Fields;
  ASSIGN_OR_RETURN(const nlohmann::json parsed, soc::parse_strictly(json, kMaxBytes));
  ASSIGN_OR_RETURN(Fields root, Fields::of(parsed, "validation"));
  RETURN_IF_ERROR(root.integer("version", 1, 1));
  ASSIGN_OR_RETURN(const nlohmann::json* bands, root.array("bands", kMaxBands));
  RETURN_IF_ERROR(root.finish());
  std::optional<ErrorBand> found;
  for (size_t i = 0; i < bands->size(); ++i) {
    ASSIGN_OR_RETURN(Fields fields,
                     Fields::of((*bands)[i], fmt::format("validation.bands[{}]", i)));
    ASSIGN_OR_RETURN(const std::string its_soc, fields.name("soc"));
    ASSIGN_OR_RETURN(const std::string its_stack, fields.name("stack"));
    ErrorBand band;
    ASSIGN_OR_RETURN(band.cases, fields.integer("cases", 1, 1'000'000));
    ASSIGN_OR_RETURN(band.mean_error_pct, fields.number("mean_error_pct", 0, 1e6));
    ASSIGN_OR_RETURN(band.largest_error_pct, fields.number("largest_error_pct", 0, 1e6));
    RETURN_IF_ERROR(fields.finish());
    if (its_soc == soc && its_stack == stack) found = band;
  }
  return found;
}

std::optional<ErrorBand> error_band(std::string_view soc, std::string_view stack) {
  for (const EmbeddedJson& file : validations()) {
    const auto band = error_band_from(*file.json, soc, stack);
    if (band && *band) return *band;
  }
  return std::nullopt;
}

}  // namespace troika::forecast
