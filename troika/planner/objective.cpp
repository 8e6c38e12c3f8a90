#include "troika/planner/objective.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace troika::planner {
namespace {

constexpr std::string_view kPowerCap = "power-cap=";
constexpr std::string_view kDeadline = "deadline=";
constexpr double kPenalty = 1000;  // for a limit that is exceeded by as much again
constexpr double kMostLimit = 1e9;

// mJ and us.
double watts(double us, double mj) { return us > 0 ? mj / us * 1e3 : 0; }

double beyond(double value, double limit) {
  return 1 + kPenalty * std::max(0.0, value / limit - 1);
}

Result<double> limit_from(std::string_view text, std::string_view what) {
  double limit = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, limit);
  if (error == std::errc() && stop == end && limit > 0 && limit <= kMostLimit) return limit;
  return make_error(ErrorCode::kInvalidArgument, "objective {}: '{}' is not a number above 0", what,
                    text.substr(0, 40));
}

}  // namespace

double Objective::score(double us, double mj) const {
  switch (kind) {
    case Kind::kTime:
      break;
    case Kind::kEnergy:
      return mj;
    case Kind::kEnergyDelay:
      return us * mj;
    case Kind::kPowerCap:
      return us * beyond(watts(us, mj), limit);
    case Kind::kDeadline:
      return mj * beyond(us / 1e3, limit);
  }
  return us;
}

bool Objective::keeps_limit(double us, double mj) const {
  if (kind == Kind::kPowerCap) return watts(us, mj) <= limit;
  return kind != Kind::kDeadline || us / 1e3 <= limit;
}

Result<Objective> objective_from(std::string_view text) {
  Objective objective;
  if (text == "latency" || text == "ttft" || text == "tpot") return objective;
  if (text == "energy" || text == "edp") {
    objective.kind = text == "edp" ? Objective::Kind::kEnergyDelay : Objective::Kind::kEnergy;
    return objective;
  }
  for (const std::string_view prefix : {kPowerCap, kDeadline}) {
    if (text.substr(0, prefix.size()) != prefix) continue;
    ASSIGN_OR_RETURN(objective.limit,
                     limit_from(text.substr(prefix.size()), prefix.substr(0, prefix.size() - 1)));
    objective.kind = prefix == kPowerCap ? Objective::Kind::kPowerCap : Objective::Kind::kDeadline;
    return objective;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "objective '{}' is not known; objectives: latency, ttft, tpot, energy, edp, "
                    "power-cap=W, deadline=MS",
                    text.substr(0, 60));
}

std::string to_string(const Objective& objective) {
  switch (objective.kind) {
    case Objective::Kind::kTime:
      break;
    case Objective::Kind::kEnergy:
      return "energy";
    case Objective::Kind::kEnergyDelay:
      return "edp";
    case Objective::Kind::kPowerCap:
      return fmt::format("{}{:g}", kPowerCap, objective.limit);
    case Objective::Kind::kDeadline:
      return fmt::format("{}{:g}", kDeadline, objective.limit);
  }
  return "latency";
}

}  // namespace troika::planner
