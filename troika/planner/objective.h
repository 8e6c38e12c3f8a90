// What passes are planned for: their time, their energy, the product of both, or one of them within
// a limit of the other.
#pragma once

#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::planner {

struct Objective {
  enum class Kind {
    kTime,
    kEnergy,       // of the whole chip, idle power included
    kEnergyDelay,  // energy times time
    kPowerCap,     // time, of the passes whose mean power is at most `limit`, W
    kDeadline,     // energy, of the passes that take at most `limit`, ms
  };
  Kind kind = Kind::kTime;
  double limit = 0;

  bool needs_power() const { return kind != Kind::kTime; }
  // Less is better. A pass beyond the limit is worse the further beyond it is: by a thousandth of
  // it, twice as bad.
  double score(double us, double mj) const;
  bool keeps_limit(double us, double mj) const;
};

// "latency", "ttft" or "tpot" (all of them: the time of each pass), "energy", "edp", "power-cap=W",
// "deadline=MS". kInvalidArgument listing them, or for a limit that is not above 0.
Result<Objective> objective_from(std::string_view text);
// The same again; "latency" for the time.
std::string to_string(const Objective& objective);

}  // namespace troika::planner
