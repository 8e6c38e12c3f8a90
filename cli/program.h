// The program: finds the verb, reads its flags, runs it, and turns an Error into one line and an
// exit code.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace troika::cli {

// `arguments` without the program's name. Returns the exit code; see docs/errors.md.
int run_program(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace troika::cli
