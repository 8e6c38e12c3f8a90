// The timeline of a trace as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <string>

#include "troika/base/trace_summary.h"

namespace troika::cli {

// `summary` is of the same trace. Whatever the trace's texts hold, they stay text in the page.
std::string trace_page(const Trace& trace, const TraceSummary& summary);

}  // namespace troika::cli
