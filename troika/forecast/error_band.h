// How far forecasts for a chip have been off: what comparing them with published figures gave.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "troika/base/embedded_json.h"
#include "troika/base/result.h"

namespace troika::forecast {

struct ErrorBand {
  int64_t cases = 0;  // published figures that were not fitted to
  double mean_error_pct = 0;
  double largest_error_pct = 0;
};

// The files of validation/ that the build embeds.
const std::vector<EmbeddedJson>& validations();

// {"version": 1, "bands": [{"soc", "stack", "cases", "mean_error_pct", "largest_error_pct"}]}.
// nullopt if the text has none for this chip and stack; kInvalidData naming the field.
Result<std::optional<ErrorBand>> error_band_from(std::string_view json, std::string_view soc,
                                                 std::string_view stack);
// From the embedded files; nullopt where nothing has been compared.
std::optional<ErrorBand> error_band(std::string_view soc, std::string_view stack);

}  // namespace troika::forecast
