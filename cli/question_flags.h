// Flags of what is asked of a described chip, for `troika simulate` and `troika sweep`.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "troika/forecast/forecast.h"

namespace troika::cli {

class QuestionFlags {
 public:
  void declare(Flags& flags);
  // All but lengths, strategy and what is to be traced.
  Result<forecast::Question> question() const;
  // The settings that a forecast depends on, for the record: "sync=queue,budget=800,...".
  std::string settings() const;

 private:
  std::string sync_ = "queue";
  std::string plan_sync_ = "as-run";
  std::string fidelity_ = "contended";
  double weight_bits_ = 0;
  double head_bits_ = 0;
  std::string load_;
  std::vector<std::string> frames_;
  double noise_ = 0;
  double unit_noise_ = 0;
  int64_t seeds_ = 16;
  int64_t budget_ = 0;
  int64_t seed_ = 1;
};

}  // namespace troika::cli
