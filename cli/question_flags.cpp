#include "cli/question_flags.h"

#include <fmt/format.h>

#include "cli/bench_matrix.h"

namespace troika::cli {
namespace {

sim::Sync sync_of(const std::string& name) {
  if (name == "queue") return sim::Sync::kQueue;
  return name == "predict" ? sim::Sync::kPredict : sim::Sync::kBlocking;
}

// "gpu,0.3,8": unit, part of its time, and GB/s if there is a third.
Result<forecast::Load> load_from(const std::string& text) {
  const std::vector<std::string> parts = split_list(text);
  if (parts.size() < 2 || parts.size() > 3) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--load: {} is not UNIT,PART or UNIT,PART,GBPS, as in gpu,0.3,8",
                      in_quotes(text));
  }
  forecast::Load load;
  load.unit = parts[0];
  ASSIGN_OR_RETURN(load.part, parse_number("--load, PART", parts[1], {0, 0.99}));
  if (parts.size() == 3) {
    ASSIGN_OR_RETURN(load.gbps, parse_number("--load, GBPS", parts[2], {0, 1e5}));
  }
  return load;
}

// "gpu,60,4,5": unit, frames a second, ms of each, and GB/s if there is a fourth.
Result<forecast::Frames> frames_from(const std::string& text) {
  const std::vector<std::string> parts = split_list(text);
  if (parts.size() < 3 || parts.size() > 4) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--frames: {} is not UNIT,PER_SECOND,MS or UNIT,PER_SECOND,MS,GBPS, as in "
                      "gpu,60,4",
                      in_quotes(text));
  }
  forecast::Frames frames;
  frames.unit = parts[0];
  ASSIGN_OR_RETURN(frames.per_second, parse_number("--frames, PER_SECOND", parts[1], {0.1, 1000}));
  ASSIGN_OR_RETURN(frames.ms, parse_number("--frames, MS", parts[2], {0.001, 1e4}));
  if (parts.size() == 4) {
    ASSIGN_OR_RETURN(frames.gbps, parse_number("--frames, GBPS", parts[3], {0, 1e5}));
  }
  return frames;
}

}  // namespace

void QuestionFlags::declare(Flags& flags) {
  flags.begin_group("How it runs");
  flags.choice("--sync", sync_, {"queue", "predict", "blocking"}, "How units wait for each other");
  flags.choice("--plan-sync", plan_sync_, {"as-run", "queue", "predict", "blocking"},
               "What the plan is made for, if not for --sync");
  flags.choice("--fidelity", fidelity_, {"contended", "roofline"},
               "roofline: nothing waits, and units share the memory without loss");
  flags.number("--weight-bits", weight_bits_, {0, 64},
               "Stored for each weight; 0: as the chip's stack stores them, else 4 (default: 0)");
  flags.number("--head-bits", head_bits_, {0, 64}, "The same of the head (default: 0)");
  flags.text("--load", load_, "UNIT,PART[,GBPS]",
             "Another program has this part of a unit's time and so much of the memory");
  flags.texts("--frames", frames_, "UNIT,PER_SECOND,MS[,GBPS]",
              "Another program's work that comes again and again on a unit, as a game's frames");
  flags.number("--noise", noise_, {0, 1}, "Deviation of each task's time (default: 0)");
  flags.number("--unit-noise", unit_noise_, {0, 1},
               "Deviation of each unit's speed from run to run (default: 0)");
  flags.integer("--seeds", seeds_, {1, 10'000}, "Runs with noise (default: 16)");
  flags.begin_group("Planning");
  flags.integer("--budget", budget_, {0, 10'000'000},
                "Schedules to try for each plan; 0: the planner's default");
  flags.integer("-s,--seed", seed_, {0, INT64_MAX}, "Of search and noise (default: 1)");
}

Result<forecast::Question> QuestionFlags::question() const {
  forecast::Question question;
  question.sync = sync_of(sync_);
  if (plan_sync_ != "as-run") question.plan_sync = sync_of(plan_sync_);
  if (fidelity_ == "roofline") question.fidelity = planner::Fidelity::kRoofline;
  question.weight_bits = weight_bits_;
  question.head_bits = head_bits_;
  if (!load_.empty()) {
    ASSIGN_OR_RETURN(question.load, load_from(load_));
  }
  for (const std::string& text : frames_) {
    ASSIGN_OR_RETURN(forecast::Frames frames, frames_from(text));
    question.frames.push_back(std::move(frames));
  }
  question.variation = {noise_, unit_noise_, static_cast<int32_t>(seeds_)};
  if (budget_ > 0) question.budget.evaluations = budget_;
  question.budget.seed = static_cast<uint64_t>(seed_);
  return question;
}

std::string QuestionFlags::settings() const {
  std::string text = fmt::format("sync={}", sync_);
  const auto add = [&text](bool given, const std::string& setting) {
    if (given) text += " " + setting;
  };
  add(plan_sync_ != "as-run", "plan-sync=" + plan_sync_);
  add(fidelity_ != "contended", "fidelity=" + fidelity_);
  add(weight_bits_ > 0, fmt::format("weight-bits={}", weight_bits_));
  add(head_bits_ > 0, fmt::format("head-bits={}", head_bits_));
  add(!load_.empty(), "load=" + load_);
  for (const std::string& frames : frames_) add(true, "frames=" + frames);
  add(noise_ > 0 || unit_noise_ > 0, fmt::format("noise={}/{}/{}", noise_, unit_noise_, seeds_));
  add(budget_ > 0, fmt::format("budget={}", budget_));
  return text + fmt::format(" seed={}", seed_);
}

}  // namespace troika::cli
