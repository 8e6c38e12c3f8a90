// Compares devices alone with the same devices together, taking turns in one process:
//   devices_bench MODEL DEVICE,DEVICE[,...] [ROUNDS [PROMPT [TOKENS [SYNC [SPLIT]]]]]
// For prefill and decode: medians and spread of each, the sum of the devices alone, and what part
// of it they reach together; and what they reach at once, each with a context of its own: what is
// missing there they take from each other without ever meeting. Run it on an idle machine; devices
// should name different cores.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/need.h"
#include "troika/base/thread_time.h"
#include "troika/engine/engine.h"

namespace {

using namespace troika;
using bench::fail;
using bench::need;

constexpr int kBalanceSteps = 3;

struct Samples {
  std::vector<double> tok_s;
  double median() const {
    std::vector<double> sorted = tok_s;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  std::string text() const {
    const auto [least, most] = std::minmax_element(tok_s.begin(), tok_s.end());
    return fmt::format("{:.1f} ({:.1f} to {:.1f})", median(), *least, *most);
  }
};

struct Side {
  std::string devices;
  std::unique_ptr<engine::Engine> engine;
  Samples prefill;
  Samples decode;
  Samples at_once;                      // decode, while the others decode for themselves
  std::vector<engine::DeviceUse> uses;  // of the last decode turn, then of the last prefill turn
  std::vector<engine::DeviceUse> prefill_uses;
  Duration decode_time{};
  Duration prefill_time{};
};

struct Settings {
  std::string model;
  std::string devices;
  int rounds = 7;
  int64_t prompt = 512;
  int64_t tokens = 64;
  runtime::Sync sync = runtime::Sync::kQueue;
  std::string split;
};

Side open(const Settings& settings, const std::string& devices, bool together) {
  Side side;
  side.devices = devices;
  engine::EngineOptions options;
  options.devices = devices;
  options.context = settings.prompt + settings.tokens + 1;
  options.sync = settings.sync;
  if (together) {
    options.split = settings.split;
    options.force_all = true;
  }
  options.note = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  options.warn = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  side.engine = need(engine::Engine::create(need(model::Model::load(settings.model)), options));
  return side;
}

void measure(Side& side, const Settings& settings, bool counts) {
  side.engine->take_uses();
  side.prefill_time = need(side.engine->time_prefill(settings.prompt, 0));
  side.prefill_uses = side.engine->take_uses();
  side.decode_time = need(side.engine->time_decode(settings.tokens, settings.prompt));
  side.uses = side.engine->take_uses();
  if (!counts) return;
  side.prefill.tok_s.push_back(static_cast<double>(settings.prompt) /
                               to_seconds(side.prefill_time));
  side.decode.tok_s.push_back(static_cast<double>(settings.tokens) / to_seconds(side.decode_time));
}

// All devices at the same time, each for itself, for about as long as the first takes for its
// tokens alone.
void measure_at_once(std::span<Side> alone, const Settings& settings) {
  constexpr int64_t kPiece = 4;
  const Duration length = alone.front().decode_time;
  std::vector<std::thread> threads;
  for (Side& side : alone) {
    threads.emplace_back([&side, &settings, length] {
      Duration spent{};
      int64_t tokens = 0;
      for (; spent < length; tokens += kPiece) {
        spent += need(side.engine->time_decode(kPiece, settings.prompt));
      }
      side.at_once.tok_s.push_back(static_cast<double>(tokens) / to_seconds(spent));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The time that the device waited for others although they had nothing to wait for: joins are
// counted apart, by how late a waiter starts once it can.
void print_uses(const char* phase, const std::vector<engine::DeviceUse>& uses, Duration time) {
  const double seconds = to_seconds(time);
  for (const engine::DeviceUse& use : uses) {
    std::vector<Duration> wake_ups = use.wake_ups;
    std::sort(wake_ups.begin(), wake_ups.end());
    const double median_us = wake_ups.empty() ? 0 : to_us(wake_ups[wake_ups.size() / 2]);
    const double waking_us = static_cast<double>(use.joins) * median_us;
    fmt::print(
        "  {} {}: {:.0f} % of the work; {} tasks, busy {:.0f} % of the time, {:.0f} % of a core; "
        "{} joins, wake-up {:.1f} us in the median, together {:.1f} % of the time; "
        "imbalance {:.1f} % of the time\n",
        phase, use.name, 100 * use.share, use.tasks, 100 * to_seconds(use.busy) / seconds,
        100 * to_seconds(use.cpu) / seconds, use.joins, median_us, waking_us / seconds / 1e4,
        std::max(0.0, to_us(use.join_wait) - waking_us) / seconds / 1e4);
  }
}

void report(const std::vector<Side>& sides, const Settings& settings) {
  fmt::print("| devices | prefill {}, tok/s | decode at {}, tok/s |\n|---|---|---|\n",
             settings.prompt, settings.prompt);
  double prefill_sum = 0;
  double decode_sum = 0;
  double at_once_sum = 0;
  std::string at_once;
  for (const Side& side : sides) {
    fmt::print("| {} | {} | {} |\n", side.devices, side.prefill.text(), side.decode.text());
    if (&side == &sides.back()) break;
    prefill_sum += side.prefill.median();
    decode_sum += side.decode.median();
    at_once_sum += side.at_once.median();
    at_once +=
        fmt::format("{}{} {}", at_once.empty() ? "" : "; ", side.devices, side.at_once.text());
  }
  const Side& together = sides.back();
  fmt::print("together, of the sum: prefill {:.2f}, decode {:.2f} (sync {}; {})\n",
             together.prefill.median() / prefill_sum, together.decode.median() / decode_sum,
             to_string(settings.sync), together.engine->plan().reason);
  fmt::print("decode at once, each for itself, tok/s: {}; of the sum: {:.2f}\n", at_once,
             at_once_sum / decode_sum);
  print_uses("prefill", together.prefill_uses, together.prefill_time);
  print_uses("decode", together.uses, together.decode_time);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("give a model and devices, e.g. model.gguf cpu@0,systolic@1");
  Settings settings;
  settings.model = argv[1];
  settings.devices = argv[2];
  if (argc > 3) settings.rounds = std::atoi(argv[3]);
  if (argc > 4) settings.prompt = std::atoll(argv[4]);
  if (argc > 5) settings.tokens = std::atoll(argv[5]);
  const std::string sync = argc > 6 ? argv[6] : "queue";
  for (const auto policy :
       {runtime::Sync::kBlocking, runtime::Sync::kPredict, runtime::Sync::kQueue}) {
    if (to_string(policy) == sync) settings.sync = policy;
  }
  if (argc > 7) settings.split = argv[7];
  if (settings.rounds < 1 || settings.prompt < 1 || settings.tokens < 1) {
    fail("rounds, prompt and tokens must be 1 or more");
  }
  std::vector<Side> sides;
  for (size_t begin = 0; begin < settings.devices.size();) {
    const size_t end = std::min(settings.devices.find(',', begin), settings.devices.size());
    sides.push_back(open(settings, settings.devices.substr(begin, end - begin), false));
    begin = end + 1;
  }
  sides.push_back(open(settings, settings.devices, true));
  for (Side& side : sides) measure(side, settings, false);
  // What a turn showed gives the devices new shares. A prompt counts from its second time on.
  for (int i = 0; i < kBalanceSteps; ++i) {
    measure(sides.back(), settings, false);
    if (const Status balanced = sides.back().engine->balance(); !balanced) {
      fail(balanced.error().message);
    }
    measure(sides.back(), settings, false);
  }
  const TimePoint start = system_clock().now();
  const Duration ready_before = time_without_core();
  for (int round = 0; round < settings.rounds; ++round) {
    for (Side& side : sides) measure(side, settings, true);
    measure_at_once(std::span(sides).first(sides.size() - 1), settings);
  }
  const Duration took = system_clock().now() - start;
  report(sides, settings);
  fmt::print("threads of this program wanted a core in vain for {:.1f} % of the time\n",
             100 * to_seconds(time_without_core() - ready_before) / to_seconds(took));
}
