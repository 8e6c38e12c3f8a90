// How far Troika's plans go beyond the published strategies, and how near to what a chip could do
// at all, on described chips. Everything here is simulated.
//   beyond_papers [SCHEDULES TO TRY FOR EACH PASS] > table.md
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "troika/reproduce/runs.h"
#include "troika/soc/catalogue.h"

namespace {

using namespace troika;
using reproduce::PassResult;

// The geometric mean of what is added.
class GeometricMean {
 public:
  void add(double value) {
    sum_ += std::log(value);
    ++count_;
  }
  double value() const { return count_ > 0 ? std::exp(sum_ / count_) : 0; }

 private:
  double sum_ = 0;
  double count_ = 0;
};

struct Question {
  std::string soc;
  std::string shape;
  int64_t prompt = 0;
  bool decode = false;
};

struct Passes {
  const PassResult* troika = nullptr;
  const PassResult* mosaic = nullptr;
  const PassResult* infer = nullptr;
  double bound_us = 0;
};

class Table {
 public:
  explicit Table(planner::Budget budget)
      : runs_([](std::string_view name) { return soc::find(name); }, budget) {}

  Result<Passes> passes(const Question& question) {
    Passes passes;
    ASSIGN_OR_RETURN(passes.troika, pass(question, "troika"));
    ASSIGN_OR_RETURN(passes.mosaic, pass(question, "heteromosaic"));
    ASSIGN_OR_RETURN(passes.infer, pass(question, "heteroinfer"));
    if (question.decode) return passes;
    const published::Run run = run_of(question, "troika");
    ASSIGN_OR_RETURN(passes.bound_us, runs_.bound_us(key_of(run, question)));
    return passes;
  }

  // The part of the time that the busiest unit waits, and what it does beyond the bound.
  Result<std::string> what_holds(const Question& question, const Passes& passes) {
    ASSIGN_OR_RETURN(const cost::DescribedCost* chip, runs_.chip(run_of(question, "troika")));
    const planner::Forecast& forecast = passes.troika->forecast;
    std::string text;
    double most = 0;
    for (size_t i = 0; i < forecast.busy_us.size(); ++i) {
      const double part = forecast.busy_us[i] / forecast.us;
      most = std::max(most, part);
      if (part < 0.005) continue;
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", chip->devices()[i].name,
                          100 * part);
    }
    const double waits = 1 - most;
    const double extra = most - passes.bound_us / forecast.us;
    return fmt::format("{} busy; waiting {:.1f} %, more work than the bound's {:.1f} %", text,
                       100 * waits, 100 * extra);
  }

 private:
  static published::Run run_of(const Question& question, std::string_view strategy) {
    published::Run run;
    run.soc = question.soc;
    run.strategy = strategy;
    return run;
  }
  static reproduce::RunKey key_of(const published::Run& run, const Question& question) {
    reproduce::RunKey key;
    key.run = &run;
    key.shape = question.shape;
    key.prompt = question.prompt;
    key.decode = question.decode;
    return key;
  }
  Result<const PassResult*> pass(const Question& question, std::string_view strategy) {
    const published::Run run = run_of(question, strategy);
    return runs_.pass(key_of(run, question));
  }

  reproduce::Runs runs_;
};

Status prefill_table(Table& table) {
  std::puts(
      "| chip | model | tokens | troika ms | part of the bound | over heteromosaic | over "
      "heteroinfer | energy of heteromosaic's | plan | what holds it |\n"
      "|---|---|---|---|---|---|---|---|---|---|");
  GeometricMean bound;
  GeometricMean mosaic;
  GeometricMean infer;
  double least = HUGE_VAL;
  for (const char* chip : {"ryzen-ai-7-350", "ryzen-ai-9-hx-370", "ryzen-ai-max-395"}) {
    for (const char* shape : {"llama-3-8b", "phi-3.5-mini", "qwen2.5-14b"}) {
      for (const int64_t prompt : {1024, 4096, 16384}) {
        const Question question{chip, shape, prompt, false};
        ASSIGN_OR_RETURN(const Passes passes, table.passes(question));
        ASSIGN_OR_RETURN(const std::string holds, table.what_holds(question, passes));
        const double us = passes.troika->forecast.us;
        const double over_mosaic = passes.mosaic->forecast.us / us;
        const double over_infer = passes.infer->forecast.us / us;
        bound.add(passes.bound_us / us);
        mosaic.add(over_mosaic);
        infer.add(over_infer);
        least = std::min({least, over_mosaic, over_infer});
        fmt::print("| {} | {} | {} | {:.1f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {} | {} |\n",
                   chip, shape, prompt, us / 1e3, passes.bound_us / us, over_mosaic, over_infer,
                   passes.troika->energy_j() / passes.mosaic->energy_j(), passes.troika->plan,
                   holds);
        std::fflush(stdout);
      }
    }
  }
  fmt::print(
      "\nGeometric means: {:.3f} of the bound, {:.3f} over heteromosaic, {:.3f} over heteroinfer; "
      "least gain {:.3f}.\n\n",
      bound.value(), mosaic.value(), infer.value(), least);
  return {};
}

Status decode_table(Table& table) {
  std::puts("| chip | model | troika tok/s | over heteroinfer |\n|---|---|---|---|");
  GeometricMean gain;
  for (const char* shape : {"llama-3-8b", "llama-3.2-3b", "internlm2-1.8b"}) {
    const Question question{"snapdragon-8-gen-3", shape, 256, true};
    ASSIGN_OR_RETURN(const Passes passes, table.passes(question));
    const double us = passes.troika->forecast.us;
    gain.add(passes.infer->forecast.us / us);
    fmt::print("| snapdragon-8-gen-3 | {} | {:.2f} | {:.3f} |\n", shape, 1e6 / us,
               passes.infer->forecast.us / us);
  }
  fmt::print("\nGeometric mean: {:.3f}.\n", gain.value());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  planner::Budget budget;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), budget.evaluations);
    if (argc > 2 || error != std::errc() || end != text.data() + text.size()) {
      std::fputs("usage: beyond_papers [SCHEDULES TO TRY FOR EACH PASS]\n", stderr);
      return 2;
    }
  }
  Table table(budget);
  for (const auto part : {prefill_table, decode_table}) {
    const auto done = part(table);
    if (done) continue;
    fmt::print(stderr, "error: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
