#include "troika/engine/balance.h"

#include <algorithm>
#include <utility>

namespace troika::engine {
namespace {

using runtime::PartWork;
using runtime::WorkPart;

constexpr int64_t kEnoughPasses = 32;
constexpr Duration kEnoughPrefill = std::chrono::milliseconds(250);
constexpr int kMostDisturbedPercent = 10;
// Less is within what a core's speed changes by itself.
constexpr double kWorthwhile = 0.02;

constexpr std::pair<WorkPart, double plan::DeviceRates::*> kDecodeParts[] = {
    {WorkPart::kAttention, &plan::DeviceRates::attention},
    {WorkPart::kMlp, &plan::DeviceRates::mlp},
    {WorkPart::kHead, &plan::DeviceRates::head}};

double rate(const PartWork& work) { return static_cast<double>(work.macs) / to_seconds(work.busy); }

bool is_work(const PartWork& work) { return work.macs > 0 && work.busy > Duration::zero(); }

using Select = const PartWork& (*)(const SeenWork&, size_t part);
const PartWork& decode_part(const SeenWork& seen, size_t part) { return seen.decode[part]; }
const PartWork& prefill_part(const SeenWork& seen, size_t) { return seen.prefill; }

bool on_all(std::span<const SeenWork> seen, Select select, size_t part) {
  return std::all_of(seen.begin(), seen.end(),
                     [&](const SeenWork& one) { return is_work(select(one, part)); });
}

bool enough_decode(std::span<const SeenWork> seen) {
  return !seen.empty() && std::all_of(seen.begin(), seen.end(), [](const SeenWork& one) {
    return one.decode_passes >= kEnoughPasses;
  });
}

bool enough_prefill(std::span<const SeenWork> seen) {
  return !seen.empty() && std::all_of(seen.begin(), seen.end(), [](const SeenWork& one) {
    return one.prefill.macs > 0 && one.prefill.busy >= kEnoughPrefill;
  });
}

struct Times {
  double now = 0;       // seconds
  double balanced = 0;  // seconds

  void add(std::span<const SeenWork> seen, Select select, size_t part) {
    double slowest = 0;
    double macs = 0;
    double rates = 0;
    for (const SeenWork& one : seen) {
      const PartWork& work = select(one, part);
      slowest = std::max(slowest, to_seconds(work.busy));
      macs += static_cast<double>(work.macs);
      rates += rate(work);
    }
    now += slowest;
    balanced += macs / rates;
  }
  double saved() const { return now > 0 ? 1 - balanced / now : 0; }
};

}  // namespace

void SeenWork::add(const runtime::DeviceWork& work, int64_t passes) {
  for (size_t i = 0; i < decode.size(); ++i) decode[i].add(work.decode[i]);
  prefill.add(work.prefill);
  decode_passes += passes;
}

std::vector<plan::DeviceRates> learnt_rates(std::span<const SeenWork> seen,
                                            std::span<const plan::DeviceRates> known) {
  std::vector<plan::DeviceRates> rates(known.begin(), known.end());
  if (enough_decode(seen)) {
    for (const auto& [part, slot] : kDecodeParts) {
      const auto index = static_cast<size_t>(part);
      if (!on_all(seen, decode_part, index)) continue;
      for (size_t i = 0; i < rates.size(); ++i) rates[i].*slot = rate(seen[i].decode[index]);
    }
  }
  if (enough_prefill(seen)) {
    for (size_t i = 0; i < rates.size(); ++i) rates[i].prefill = rate(seen[i].prefill);
  }
  return rates;
}

Saved saved_by_balance(std::span<const SeenWork> seen) {
  Times decode;
  Times prefill;
  if (enough_decode(seen)) {
    for (const auto& [part, slot] : kDecodeParts) {
      const auto index = static_cast<size_t>(part);
      if (on_all(seen, decode_part, index)) decode.add(seen, decode_part, index);
    }
  }
  if (enough_prefill(seen)) prefill.add(seen, prefill_part, 0);
  return {decode.saved(), prefill.saved()};
}

bool try_new_shares(const Saved& saved, Tried& tried) {
  bool worthwhile = false;
  const auto try_phase = [&](double saves, std::optional<double>& last) {
    if (saves <= kWorthwhile || (last && saves >= *last / 2)) return;
    last = saves;
    worthwhile = true;
  };
  try_phase(saved.decode, tried.decode);
  try_phase(saved.prefill, tried.prefill);
  return worthwhile;
}

bool was_disturbed(Duration without_core, Duration time) {
  return without_core > time * kMostDisturbedPercent / 100;
}

}  // namespace troika::engine
