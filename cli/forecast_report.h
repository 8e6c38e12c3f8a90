// What `troika simulate` says of a forecast.
#pragma once

#include <optional>
#include <string>

#include "cli/json_output.h"
#include "troika/forecast/error_band.h"
#include "troika/forecast/forecast.h"

namespace troika::cli {

// A forecast and what it is of. Borrows the chip, the question and the answer.
struct ForecastReport {
  const soc::Soc& soc;
  std::string stack;  // "default", or another one's name
  std::string model;
  std::string settings;
  const forecast::Question& question;
  std::optional<forecast::ErrorBand> band;
  const forecast::Answer& answer;
};

std::string report_text(const ForecastReport& report);
Json report_json(const ForecastReport& report);
// On the real chip, with the devices of Troika that drive its units.
std::string check_command(const ForecastReport& report);

}  // namespace troika::cli
