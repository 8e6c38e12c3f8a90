// Scripts that complete verbs, flags and file names in a shell.
#pragma once

#include <string>

namespace troika::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace troika::cli
