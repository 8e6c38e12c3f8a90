// What this program is: version, commit, compiler.
#pragma once

#include <string>

namespace troika::cli {

std::string version();       // "0.1.0"
std::string build_commit();  // "1a2b3c4d5", with "-dirty" if files had changed; or "unknown"
std::string compiler();      // "GNU 12.2.0"
// Of the program's own file, too: what another build learnt about this machine is not believed.
std::string build_stamp();
// The lines of --version.
std::string version_text();

}  // namespace troika::cli
