// Prints what the devices of this build compute, as the Markdown of docs/devices.md: facts, and
// each operator by the type of its weights, found out by running the conformance catalogue. Else
// how fast each device is alone, with one core: at each operator, or at whole models.
//   device_table [--operators | MODEL.gguf...]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/operator_speed.h"
#include "troika/device/conformance/bounds.h"
#include "troika/device/conformance/run_case.h"
#include "troika/device/registry/registry.h"
#include "troika/engine/engine.h"

namespace {

using namespace troika;
using device::conformance::Case;
using device::conformance::Problem;

// Of the cases of one operator and type.
struct Tally {
  int ran = 0;
  int within = 0;
  int left_out = 0;
  double worst = 0;  // NMSE
};

struct Subject {
  std::string name;
  std::unique_ptr<device::Device> device;  // null: does not open here
  std::string error;
};

// `threads`: cores of each; 0: all.
std::vector<Subject> open_all(int threads) {
  std::vector<Subject> subjects;
  for (const device::DeviceType* const type : device::device_types()) {
    if (type->wraps()) continue;  // nothing by itself
    Subject subject;
    subject.name = type->name;
    device::OpenOptions options;
    options.threads = threads;
    auto opened = device::open_devices(type->name, options);
    if (opened) {
      subject.device = std::move(opened->front());
    } else {
      subject.error = opened.error().message;
    }
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

// What the case's operators read: types of weights, and of the KV cache.
std::string types_of(const std::string& group, const Problem& problem) {
  if (group == "kv_write" || group == "attention") {
    return problem.kv.layout.type == device::KvType::kF16 ? "KV F16" : "KV F32";
  }
  std::vector<std::string> types;
  for (const graph::OpId id : problem.program.ops) {
    const graph::Op& op = problem.graph.op(id);
    if (op.kind != graph::OpKind::kMatMul && op.kind != graph::OpKind::kEmbed) continue;
    const std::string type(model::traits(op.weight->type).name);
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types.empty() ? "no weights" : fmt::format("{}", fmt::join(types, " and "));
}

using Row = std::pair<std::string, std::string>;  // operator, type

void add_case(device::Device& device, const Case& c, Tally& tally) {
  const auto outcome = run_case(device, c);
  if (outcome && !outcome->not_run.empty()) {
    ++tally.left_out;
    return;
  }
  ++tally.ran;
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return;
  }
  tally.within += outcome->passed() ? 1 : 0;
  tally.worst = std::max(tally.worst, outcome->nmse);
}

std::string cell(const Tally& tally) {
  if (tally.ran == 0) return "-";
  if (tally.within < tally.ran) return fmt::format("**{} of {}**", tally.within, tally.ran);
  const std::string left_out =
      tally.left_out > 0 ? fmt::format(" (+{} left out)", tally.left_out) : "";
  const std::string worst = tally.worst > 0 ? fmt::format("{:.0e}", tally.worst) : "exact";
  return fmt::format("{}{}, {}", tally.ran, left_out, worst);
}

// The first lines of a table with a column for each device.
void print_head(const std::string& columns, const std::vector<Subject>& subjects) {
  fmt::print("\n| {} |", columns);
  for (const Subject& subject : subjects) fmt::print(" `{}` |", subject.name);
  fmt::print("\n|");
  const auto count = static_cast<size_t>(std::count(columns.begin(), columns.end(), '|')) + 1;
  for (size_t i = 0; i < count + subjects.size(); ++i) fmt::print("---|");
  fmt::print("\n");
}

void print_facts(const std::vector<Subject>& subjects) {
  fmt::print("| device | kind | rows | tiles N, K | arithmetic | strided rows | description |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const Subject& subject : subjects) {
    if (subject.device == nullptr) {
      fmt::print("| `{}` | not here: {} | | | | | |\n", subject.name, subject.error);
      continue;
    }
    const device::DeviceInfo& info = subject.device->info();
    const std::string rows =
        info.standard_rows.empty() ? "any" : fmt::format("{}", fmt::join(info.standard_rows, ", "));
    fmt::print("| `{}` | {} | {} | {}, {} | {} | {} | {} |\n", subject.name, to_string(info.kind),
               rows, info.n_tile, info.k_tile, info.exact ? "FP32" : "FP16 inputs",
               info.strided ? "yes" : "no", info.description);
  }
}

// A bound, and what leaves room for it.
struct Reason {
  const char* operators;
  graph::OpKind example;
  const char* exact;
  const char* half;
};

constexpr Reason kReasons[] = {
    {"embed, concat, gather_rows, kv_write", graph::OpKind::kConcat,
     "copies; a block's weight is one or two roundings", "one rounding in, one out: 2^-24 each"},
    {"rope_table", graph::OpKind::kRopeTable,
     "angles in double: in FP32 those of the thousandth token are wrong in the fifth digit",
     "one rounding of the result"},
    {"rope, add", graph::OpKind::kAdd, "a few roundings one after another",
     "up to four roundings of a value that rules its row"},
    {"rms_norm, silu_mul", graph::OpKind::kSiluMul, "a sum of squares, an exponential good to 1e-6",
     "as rope"},
    {"mat_mul", graph::OpKind::kMatMul,
     "a sum of n terms in any order is off by 2^-24 sqrt(n): 5e-12 for 1536",
     "both factors are rounded, sums are in FP32"},
    {"attention", graph::OpKind::kAttention, "as mat_mul, and an exponential good to 1e-6",
     "an error of 2^-11 of a score of 8 is one of 0.4 % of a weight"},
};

void print_bounds() {
  fmt::print("\n| operators | FP32 | because | FP16 inputs | because |\n|---|---|---|---|---|\n");
  for (const Reason& reason : kReasons) {
    fmt::print("| {} | {:.0e} | {} | {:.0e} | {} |\n", reason.operators,
               device::conformance::op_bound(reason.example, true), reason.exact,
               device::conformance::op_bound(reason.example, false), reason.half);
  }
}

void print_support(const std::vector<Subject>& subjects) {
  std::vector<Row> rows;  // in the catalogue's order
  std::vector<std::map<Row, Tally>> tallies(subjects.size());
  for (const std::string& group : device::conformance::groups()) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      device::Device* const device = subjects[i].device.get();
      if (device == nullptr) continue;
      for (const Case& c : device::conformance::cases_of(group, device->info())) {
        if (device->lost()) break;
        const Row row = {group, types_of(group, *c.build())};
        if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
        add_case(*device, c, tallies[i][row]);
      }
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    const auto groups = device::conformance::groups();
    return std::find(groups.begin(), groups.end(), a.first) <
           std::find(groups.begin(), groups.end(), b.first);
  });
  print_head("operator | type", subjects);
  for (const Row& row : rows) {
    fmt::print("| {} | {} |", row.first, row.second);
    for (auto& tally : tallies) fmt::print(" {} |", cell(tally[row]));
    fmt::print("\n");
  }
}

constexpr int64_t kPromptRows = 128;
constexpr int64_t kAnswerTokens = 8;

// Prefill and decode in tok/s, the better of two; why not, if it cannot.
std::string speed(const std::string& path, const std::string& device) {
  auto loaded = model::Model::load(path);
  if (!loaded) return loaded.error().message;
  engine::EngineOptions options;
  options.devices = device;
  options.threads = 1;
  options.context = kPromptRows + kAnswerTokens + 1;
  auto engine = engine::Engine::create(std::move(*loaded), options);
  if (!engine) return engine.error().message;
  double prefill = 0;
  double decode = 0;
  for (int round = 0; round < 3; ++round) {
    const auto prompt = (*engine)->time_prefill(kPromptRows, 0);
    if (!prompt) return prompt.error().message;
    const auto answer = (*engine)->time_decode(kAnswerTokens, kPromptRows);
    if (!answer) return answer.error().message;
    if (round == 0) continue;  // compiles
    prefill = std::max(prefill, kPromptRows / to_seconds(*prompt));
    decode = std::max(decode, kAnswerTokens / to_seconds(*answer));
  }
  return fmt::format("{:.0f} / {:.0f}", prefill, decode);
}

void print_speed(const std::vector<Subject>& subjects, const std::vector<std::string>& models) {
  print_head("model", subjects);
  for (const std::string& path : models) {
    fmt::print("| {} |", path.substr(path.rfind('/') + 1));
    for (const Subject& subject : subjects) {
      fmt::print(" {} |", subject.device == nullptr ? "-" : speed(path, subject.name));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

// "12k / 340", or why not.
std::string operator_speed(device::Device& device, const bench::TimedOperator& timed) {
  std::string cell;
  for (const auto* const c : {&timed.prompt, &timed.token}) {
    const auto rate = bench::rows_per_second(device, *c);
    if (!rate && rate.error().code == ErrorCode::kUnsupported) return "-";
    if (!rate) return rate.error().message;
    cell += cell.empty() ? "" : " / ";
    cell += *rate < 1e4 ? fmt::format("{:.0f}", *rate) : fmt::format("{:.0f}k", *rate / 1e3);
  }
  return cell;
}

void print_operator_speeds(const std::vector<Subject>& subjects) {
  print_head("operator | type", subjects);
  for (const bench::TimedOperator& timed : bench::timed_operators()) {
    fmt::print("| {} | {} |", timed.op, timed.type);
    for (const Subject& subject : subjects) {
      fmt::print(" {} |", subject.device == nullptr ? "-" : operator_speed(*subject.device, timed));
    }
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  const bool operators = models == std::vector<std::string>{"--operators"};
  std::vector<Subject> subjects = open_all(operators ? 1 : 0);
  if (operators) {
    print_operator_speeds(subjects);
  } else if (models.empty()) {
    print_facts(subjects);
    print_bounds();
    print_support(subjects);
  } else {
    print_speed(subjects, models);
  }
  return 0;
}
