// The lists of chips, models, lengths and strategies that `troika sweep` and `troika gallery`
// combine.
#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "troika/forecast/sweep.h"

namespace troika::cli {

class SweepLists {
 public:
  void declare(Flags& flags);
  bool given() const { return !socs_.empty() && !shapes_.empty(); }
  // kInvalidArgument or kNotFound naming the entry.
  Status read();

  const std::vector<forecast::SweepChip>& chips() const { return chips_; }
  const std::vector<forecast::SweepModel>& models() const { return models_; }
  // All combinations, the strategies of one chip, model and length side by side.
  const std::vector<forecast::SweepCase>& cases() const { return cases_; }

 private:
  Status read_cases();

  std::string socs_;
  std::string shapes_;
  std::string prompts_ = "256";
  std::string generates_ = "32";
  std::string strategies_ = "troika";
  std::vector<forecast::SweepChip> chips_;
  std::vector<forecast::SweepModel> models_;
  std::vector<forecast::SweepCase> cases_;
};

// 0: every core.
size_t sweep_threads(int64_t asked);

}  // namespace troika::cli
