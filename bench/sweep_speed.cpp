// How many forecasts a second a sweep makes: planning with so many evaluations for each pass, and
// what a single simulated pass of 4096 rows in 4 chunks takes, with and without a trace.
//   sweep_speed [CASES] [EVALUATIONS] [THREADS]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "troika/forecast/sweep.h"
#include "troika/soc/catalogue.h"

namespace {

using namespace troika;
using Seconds = std::chrono::duration<double>;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

template <class Work>
double milliseconds_each(const Work& work) {
  work();
  constexpr int kTimes = 5;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) work();
  return seconds_since(begin) / kTimes * 1e3;
}

// A plan with 4 chunks, so that the pass has many tasks.
int one_pass(const forecast::ShapedModel& model, const cost::DescribedCost& cost) {
  planner::PassRequest request;
  request.rows = 4096;
  request.weight_bits = 4;
  request.activation_bits = 16;
  request.budget.evaluations = 200;
  const auto plan =
      planner::plan_pass(model.graph, cost, *planner::strategy_from("troika"), request);
  if (!plan) {
    std::fprintf(stderr, "%s\n", plan.error().message.c_str());
    return 1;
  }
  plan::RowsBucket bucket = plan->bucket;
  bucket.chunks = {1024};
  const double ms = milliseconds_each(
      [&] { return planner::evaluate(model.graph, cost, bucket, request).has_value(); });
  const double traced_ms = milliseconds_each(
      [&] { return planner::evaluate(model.graph, cost, bucket, request, true).has_value(); });
  const auto forecast = planner::evaluate(model.graph, cost, bucket, request);
  std::printf("8B, 4096 rows, 4 chunks: %.3f ms, %.3f ms with a trace (%lld tasks)\n", ms,
              traced_ms, forecast ? static_cast<long long>(forecast->tasks) : 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 40;
  const int evaluations = argc > 2 ? std::atoi(argv[2]) : 100;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  std::vector<forecast::SweepChip> chips;
  chips.push_back({"default", *soc::find("snapdragon-8-gen-3")});
  std::vector<forecast::SweepModel> models;
  models.push_back({"llama-3-8b", *forecast::shaped_model("llama-3-8b")});
  if (one_pass(models[0].model, cost::DescribedCost(chips[0].soc)) != 0) return 1;
  std::vector<forecast::SweepCase> all;
  for (int i = 0; i < cases; ++i) all.push_back({0, 0, 256 + 16 * (i % 200), 32, "troika"});
  forecast::SweepOptions options;
  options.threads = static_cast<size_t>(threads);
  options.question.budget.evaluations = evaluations;
  int64_t tried = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto done = forecast::sweep(
      chips, models, all, options,
      [&](const forecast::SweepCase&, const Result<forecast::Answer>& answer) -> Status {
        if (answer) tried += answer->evaluations;
        return {};
      });
  const double seconds = seconds_since(begin);
  if (!done) return 1;
  std::printf(
      "%d forecasts with %.0f evaluations each on %d threads: %.2f s, %.1f a second; "
      "10000 would take %.0f s\n",
      cases, static_cast<double>(tried) / cases, threads, seconds, cases / seconds,
      1e4 * seconds / cases);
  return 0;
}
