// What a trace adds up to, as `trace` reports it: the table for people, and the JSON object.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "troika/base/trace_summary.h"

namespace troika::cli {

// Keys: see docs/cli.md.
Json trace_json(const Trace& trace, const TraceSummary& summary);
std::string trace_text(const Trace& trace, const TraceSummary& summary);

}  // namespace troika::cli
