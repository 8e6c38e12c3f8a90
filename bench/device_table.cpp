// Prints what the devices of this build compute, as the Markdown of docs/devices.md: facts, and
// each operator by the type of its weights, found out by running the conformance catalogue. With
// models, also how fast each device is alone:
//   device_table [MODEL.gguf...]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "troika/device/conformance/run_case.h"
#include "troika/device/quarantine.h"
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

std::vector<Subject> open_all() {
  std::vector<Subject> subjects;
  for (const device::DeviceType& type : device::device_types()) {
    if (type.wraps) continue;  // nothing by itself
    Subject subject;
    subject.name = type.name;
    auto opened = device::open_devices(type.name, {});
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
  fmt::print("\n| operator | type |");
  for (const Subject& subject : subjects) fmt::print(" `{}` |", subject.name);
  fmt::print("\n|---|---|");
  for (size_t i = 0; i < subjects.size(); ++i) fmt::print("---|");
  fmt::print("\n");
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
  fmt::print("\n| model |");
  for (const Subject& subject : subjects) fmt::print(" `{}` |", subject.name);
  fmt::print("\n|---|");
  for (size_t i = 0; i < subjects.size(); ++i) fmt::print("---|");
  fmt::print("\n");
  for (const std::string& path : models) {
    fmt::print("| {} |", path.substr(path.rfind('/') + 1));
    for (const Subject& subject : subjects) {
      fmt::print(" {} |", subject.device == nullptr ? "-" : speed(path, subject.name));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> models(argv + 1, argv + argc);
  std::vector<Subject> subjects = open_all();
  if (models.empty()) {
    print_facts(subjects);
    print_support(subjects);
  } else {
    print_speed(subjects, models);
  }
  for (Subject& subject : subjects) {
    if (subject.device == nullptr || !subject.device->stuck()) continue;
    device::quarantine(std::shared_ptr<device::Device>(std::move(subject.device)));
  }
  return 0;
}
