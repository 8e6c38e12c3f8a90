// `troika plan` for a whole model: its flags, and what they ask for.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/machine_plan.h"
#include "troika/cost/described_cost.h"

namespace troika::cli {

class ModelPlanFlags {
 public:
  void declare(Flags& flags);
  // Whether a model was named.
  bool given() const { return !shape_.empty() || !model_.empty(); }
  // Plans for this machine's devices by a profile, keeps that and prints. `machine` names devices
  // or a profile.
  Status run_here(Console& console, MachineRequest machine, const std::string& strategy,
                  const std::string& grid, bool json) const;
  // Plans for the chip and prints.
  Status run(Console& console, const cost::DescribedCost& cost, const std::string& strategy,
             const std::string& grid, bool json) const;

 private:
  std::string shape_;
  std::string model_;
  std::string type_ = "Q4_0";
  int64_t prompt_ = 512;
  int64_t generate_ = 128;
  std::string activations_ = "f32";
  std::string objective_ = "latency";
  std::string sync_ = "queue";
  double weight_bits_ = 0;
  double activation_bits_ = 0;
  int64_t budget_ = 0;
  int64_t seed_ = 1;
  bool explain_ = false;
  bool ablation_ = false;
  std::string output_;
  std::string html_;
};

}  // namespace troika::cli
