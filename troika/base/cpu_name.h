// The processor's name as the system gives it.
#pragma once

#include <string>

namespace troika {

// "AMD EPYC 7763 64-Core Processor"; "unknown processor" where the system does not tell.
std::string cpu_name();

}  // namespace troika
