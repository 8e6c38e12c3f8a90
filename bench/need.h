// Benchmarks end at the first error.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "troika/base/result.h"

namespace troika::bench {

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
inline void need(const Status& status) {
  if (!status) fail(status.error().message);
}

}  // namespace troika::bench
