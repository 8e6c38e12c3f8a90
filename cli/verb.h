// What every verb of the program is: a set of flags, and something to do with them.
#pragma once

#include "cli/console.h"
#include "cli/flags.h"
#include "troika/base/result.h"

namespace troika::cli {

class Verb {
 public:
  virtual ~Verb() = default;
  // Declares the flags; they are bound to members, so a Verb is used once.
  virtual void declare(Flags& flags) = 0;
  virtual Status run(Console& console) = 0;
};

}  // namespace troika::cli
