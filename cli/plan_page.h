// A plan of whole passes as one HTML page that needs nothing else: no network, no script, no other
// file. Every cut is drawn; light or dark as the reader's system is.
#pragma once

#include <string>

#include "cli/pass_report.h"

namespace troika::cli {

// Whatever names and reasons hold, they stay text in the page.
std::string plan_page(const PassReport& report);

}  // namespace troika::cli
