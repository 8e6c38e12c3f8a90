// Where the program keeps what it learnt: checks of devices, compiled graphs, profiles.
#pragma once

#include <string>

#include "cli/flags.h"
#include "troika/base/result.h"

namespace troika::cli {

// $TROIKA_CACHE, else $XDG_CACHE_HOME/troika, else $HOME/.cache/troika; empty if none is set: then
// nothing is kept. The folder is made by whoever writes to it first.
std::string cache_folder(const Environment& environment);
// By this process's environment.
std::string cache_folder();

// Whether files can be made there; makes the folder. kIo with the reason.
Status check_folder_writable(const std::string& folder);

}  // namespace troika::cli
