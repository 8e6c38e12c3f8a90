#include "troika/plan/default_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace troika::plan {
namespace {

using graph::Stage;

// Passes of up to this many rows are bound by reading weights, as decode is.
constexpr int64_t kDecodeRows = 8;
constexpr double kMostShare = 1e6;
// Of all; less is nothing of any product.
constexpr double kLeastShare = 1e-6;
// Cutting the attention of one row costs the devices a meeting more in each layer. By rates it
// saves what the fastest one does not get; less than this part is not worth the meeting.
constexpr double kLeastCutOff = 0.1;

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string shown(std::string_view text) {
  std::string safe;
  for (const char c : text.substr(0, 60)) safe += c >= ' ' && c < 0x7f ? c : '?';
  return safe;
}

Result<std::vector<double>> parse_shares(std::string_view text, size_t n_devices) {
  std::vector<double> shares;
  for (const std::string_view part : split_text(text, '/')) {
    double share = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), share);
    const bool whole = error == std::errc() && end == part.data() + part.size();
    if (!whole || !(share > 0) || share > kMostShare) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--split: share \"{}\" is not a number above 0 and up to {}", shown(part),
                        kMostShare);
    }
    shares.push_back(share);
  }
  if (shares.size() != n_devices) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--split: {} share{} for {} device{}: give one for each, or none",
                      shares.size(), shares.size() == 1 ? "" : "s", n_devices,
                      n_devices == 1 ? "" : "s");
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (const double share : shares) {
    if (share < kLeastShare * all) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--split: share {} is less than a millionth of all: leave that device out",
                        share);
    }
  }
  return shares;
}

Result<SplitRule::Phase> parse_phase(std::string_view text, size_t n_devices) {
  SplitRule::Phase phase;
  const size_t colon = text.find(':');
  const std::optional<Cut> cut = cut_from(text.substr(0, colon));
  if (!cut) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--split: \"{}\" is not a cut: use none, weight-centric, "
                      "activation-centric, hybrid, k-cut or paired",
                      shown(text.substr(0, colon)));
  }
  phase.cut = *cut;
  if (colon != std::string_view::npos) {
    ASSIGN_OR_RETURN(phase.shares, parse_shares(text.substr(colon + 1), n_devices));
  }
  return phase;
}

// Shares that add to 1, none below `least`.
std::vector<double> normalized(std::vector<double> shares, double least) {
  double sum = 0;
  for (const double share : shares) sum += share;
  for (double& share : shares) share /= sum;
  const auto count = static_cast<double>(shares.size());
  least = std::min(least, 1 / count);
  double excess = 0;
  double missing = 0;
  for (const double share : shares) {
    excess += std::max(0.0, share - least);
    missing += std::max(0.0, least - share);
  }
  for (double& share : shares) {
    share = share < least ? least : share - (share - least) * (excess > 0 ? missing / excess : 0);
  }
  return shares;
}

std::vector<Part> to_parts(std::span<const device::DeviceInfo> infos,
                           const std::vector<double>& shares) {
  std::vector<Part> parts;
  for (size_t i = 0; i < infos.size(); ++i) parts.push_back({infos[i].name, shares[i]});
  return parts;
}

// The device that is fastest, for what is not cut.
Part fastest(const std::vector<Part>& parts) {
  Part part = *std::max_element(parts.begin(), parts.end(),
                                [](const Part& a, const Part& b) { return a.share < b.share; });
  part.share = 1;
  return part;
}

double most_share(const std::vector<Part>& parts) {
  double most = 0;
  for (const Part& part : parts) most = std::max(most, part.share);
  return most;
}

// The nearest cut that a stage knows.
Cut cut_of_stage(Cut cut, Stage stage) {
  if (stage == Stage::kInput) return cut == Cut::kActivationCentric ? cut : Cut::kNone;
  if (stage == Stage::kAttention && cut == Cut::kK) return Cut::kWeightCentric;
  if (stage == Stage::kHead && cut == Cut::kActivationCentric) return Cut::kWeightCentric;
  return cut;
}

struct PhasePlan {
  Cut cut = Cut::kPaired;
  std::vector<Part> attention;  // G1 too; one part: not cut
  std::vector<Part> mlp;        // the output projection takes the attention's slices if it can
  std::vector<Part> head;

  const std::vector<Part>& parts(Stage stage) const {
    if (stage == Stage::kHead) return head;
    return stage == Stage::kG2 ? mlp : attention;
  }
};

// The head works on the rows of wanted logits, one as a rule: it is cut as decode is.
RowsBucket bucket_of(int64_t max_rows, const PhasePlan& body, const PhasePlan& head,
                     int32_t last_layer) {
  RowsBucket bucket;
  bucket.max_rows = max_rows;
  for (const Stage stage :
       {Stage::kInput, Stage::kHead, Stage::kG1, Stage::kAttention, Stage::kG2}) {
    const PhasePlan& phase = stage == Stage::kHead ? head : body;
    Placement placement;
    placement.stage = stage;
    const bool outer = stage == Stage::kInput || stage == Stage::kHead;
    placement.first_layer = outer ? -1 : 0;
    placement.last_layer = outer ? -1 : last_layer;
    placement.cut = cut_of_stage(phase.cut, stage);
    placement.parts = phase.parts(stage);
    if (placement.parts.size() == 1) placement.cut = Cut::kNone;
    if (placement.cut == Cut::kNone) placement.parts = {fastest(placement.parts)};
    bucket.placements.push_back(std::move(placement));
  }
  return bucket;
}

double share_of(const std::vector<Part>& parts, const std::string& device) {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& part) { return part.device == device; });
  return found == parts.end() ? 0 : found->share;
}

// "paired: cpu@0 60 %, openvino@1 40 %"; of shares that are not the same everywhere those of the
// attention, of the MLP and of the head.
std::string describe(const PhasePlan& phase) {
  std::string text(to_string(phase.cut));
  for (size_t i = 0; i < phase.mlp.size(); ++i) {
    const double shares[] = {share_of(phase.attention, phase.mlp[i].device), phase.mlp[i].share,
                             phase.head[i].share};
    const bool same = shares[0] == shares[1] && shares[1] == shares[2];
    text += fmt::format("{}{} {:.0f}", i == 0 ? ": " : ", ", phase.mlp[i].device, 100 * shares[0]);
    if (!same) text += fmt::format("/{:.0f}/{:.0f}", 100 * shares[1], 100 * shares[2]);
    text += " %";
  }
  return text;
}

}  // namespace

bool SplitRule::gives_all_shares() const {
  return prefill && !prefill->shares.empty() && decode && !decode->shares.empty();
}

Result<SplitRule> parse_split(std::string_view rule, size_t n_devices) {
  SplitRule split;
  for (std::string_view part : split_text(rule, ',')) {
    const size_t equals = part.find('=');
    const std::string_view phase =
        equals == std::string_view::npos ? std::string_view() : part.substr(0, equals);
    if (equals != std::string_view::npos) part.remove_prefix(equals + 1);
    if (equals != std::string_view::npos && phase != "prefill" && phase != "decode") {
      return make_error(ErrorCode::kInvalidArgument,
                        "--split: phase \"{}\" is not prefill or decode", shown(phase));
    }
    ASSIGN_OR_RETURN(const SplitRule::Phase read, parse_phase(part, n_devices));
    for (auto* const slot : {&split.prefill, &split.decode}) {
      const bool is_prefill = slot == &split.prefill;
      if (!phase.empty() && (phase == "prefill") != is_prefill) continue;
      if (slot->has_value()) {
        return make_error(ErrorCode::kInvalidArgument, "--split: {} is given twice",
                          is_prefill ? "prefill" : "decode");
      }
      *slot = read;
    }
  }
  return split;
}

Plan default_plan(const graph::Graph& graph, std::span<const device::DeviceInfo> infos,
                  std::span<const DeviceRates> rates, const DefaultPlanOptions& options) {
  if (infos.size() == 1) {
    return single_device_plan(graph, infos.front().name, options.max_rows, options.kv_type);
  }
  const auto parts_of = [&](const std::optional<SplitRule::Phase>& rule,
                            double DeviceRates::*rate) {
    if (rule && !rule->shares.empty()) {
      return to_parts(infos, normalized(rule->shares, kLeastShare));
    }
    const bool known =
        std::all_of(rates.begin(), rates.end(), [&](const auto& one) { return one.*rate > 0; });
    std::vector<double> shares;
    for (const DeviceRates& one : rates) shares.push_back(known ? one.*rate : one.decode);
    return to_parts(infos,
                    normalized(std::move(shares), std::max(options.least_share, kLeastShare)));
  };
  const auto& of_decode = options.split.decode;
  PhasePlan decode = {
      of_decode ? of_decode->cut : Cut::kPaired, parts_of(of_decode, &DeviceRates::attention),
      parts_of(of_decode, &DeviceRates::mlp), parts_of(of_decode, &DeviceRates::head)};
  const bool by_rates = !of_decode || of_decode->shares.empty();
  if (by_rates && 1 - most_share(decode.attention) < kLeastCutOff) {
    decode.attention = {fastest(decode.attention)};
  }
  const auto& of_prefill = options.split.prefill;
  const std::vector<Part> everywhere = parts_of(of_prefill, &DeviceRates::prefill);
  const PhasePlan prefill = {of_prefill ? of_prefill->cut : Cut::kActivationCentric, everywhere,
                             everywhere, everywhere};
  // Few rows cannot be shared out fairly in standard lengths.
  PhasePlan between = prefill;
  if (!options.split.prefill) between.cut = Cut::kPaired;

  Plan plan = single_device_plan(graph, infos.front().name, options.max_rows, options.kv_type);
  plan.devices.clear();
  for (const device::DeviceInfo& info : infos) plan.devices.push_back(info.name);
  plan.reason = fmt::format("shares {}; prefill {}; decode {}",
                            options.split.gives_all_shares() ? "as asked for" : "by measured rates",
                            describe(prefill), describe(decode));
  plan.buckets.clear();
  const auto last = static_cast<int32_t>(graph.n_layers - 1);
  for (const auto& [rows, phase] : {std::pair{kDecodeRows, &decode}, {kManyRows, &between}}) {
    if (rows < options.max_rows) plan.buckets.push_back(bucket_of(rows, *phase, decode, last));
  }
  const PhasePlan& largest = options.max_rows <= kDecodeRows ? decode
                             : options.max_rows <= kManyRows ? between
                                                             : prefill;
  plan.buckets.push_back(bucket_of(options.max_rows, largest, decode, last));
  return plan;
}

}  // namespace troika::plan
