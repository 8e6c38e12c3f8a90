#include "troika/published/paper.h"

#include <array>
#include <charconv>
#include <set>

#include "troika/soc/fields.h"

namespace troika::published {
namespace {

using nlohmann::json;
using soc::Fields;

constexpr size_t kMaxPaperBytes = size_t{1} << 20;
constexpr size_t kMaxList = 16;
constexpr int64_t kMaxExtent = int64_t{1} << 21;
// More than any figure is, in whatever unit.
constexpr double kMaxFigure = 1e9;

// Which fields a run has.
enum class RunKind { kProduct, kModel, kChip };

struct MetricFacts {
  Metric metric;
  std::string_view name;
  std::string_view unit;
  RunKind kind;
  bool of_unit;   // one unit's
  bool compares;  // with `against`
};

constexpr std::array kMetrics = {
    MetricFacts{Metric::kOperatorUs, "operator_us", "us", RunKind::kProduct, false, false},
    MetricFacts{Metric::kOperatorShare, "operator_share", "share", RunKind::kProduct, true, false},
    MetricFacts{Metric::kOperatorGain, "operator_gain", "times", RunKind::kProduct, false, true},
    MetricFacts{Metric::kOperandOrderGain, "operand_order_gain", "times", RunKind::kProduct, false,
                false},
    MetricFacts{Metric::kMemoryGbps, "memory_gbps", "GB/s", RunKind::kChip, false, false},
    MetricFacts{Metric::kCoRunSlowdown, "co_run_slowdown", "times", RunKind::kChip, false, false},
    MetricFacts{Metric::kRetainedSum, "retained_sum", "times", RunKind::kChip, false, false},
    MetricFacts{Metric::kBuildMs, "build_ms", "ms", RunKind::kModel, false, false},
    MetricFacts{Metric::kTtftS, "ttft_s", "s", RunKind::kModel, false, false},
    MetricFacts{Metric::kPrefillTokS, "prefill_tok_s", "tok/s", RunKind::kModel, false, false},
    MetricFacts{Metric::kPrefillTokSPeak, "prefill_tok_s_peak", "tok/s", RunKind::kModel, false,
                false},
    MetricFacts{Metric::kDecodeTokS, "decode_tok_s", "tok/s", RunKind::kModel, false, false},
    MetricFacts{Metric::kPrefillGain, "prefill_gain", "times", RunKind::kModel, false, true},
    MetricFacts{Metric::kPrefillGainPeak, "prefill_gain_peak", "times", RunKind::kModel, false,
                true},
    MetricFacts{Metric::kDecodeGain, "decode_gain", "times", RunKind::kModel, false, true},
    MetricFacts{Metric::kBoundGain, "bound_gain", "times", RunKind::kModel, false, false},
    MetricFacts{Metric::kProductShare, "product_share", "share", RunKind::kModel, true, false},
    MetricFacts{Metric::kBalanceShare, "balance_share", "share", RunKind::kModel, true, false},
    MetricFacts{Metric::kDecodeShare, "decode_share", "share", RunKind::kModel, true, false},
    MetricFacts{Metric::kOtherWorkShare, "other_work_share", "share", RunKind::kModel, false,
                false},
    MetricFacts{Metric::kLayerMs, "layer_ms", "ms", RunKind::kModel, false, false},
    MetricFacts{Metric::kPrefillPowerW, "prefill_power_w", "W", RunKind::kModel, false, false},
    MetricFacts{Metric::kUnitPowerW, "unit_power_w", "W", RunKind::kModel, true, false},
    MetricFacts{Metric::kTokenEnergyJ, "token_energy_j", "J", RunKind::kModel, false, false},
    MetricFacts{Metric::kEnergySaving, "energy_saving", "%", RunKind::kModel, false, true},
    MetricFacts{Metric::kPrefillEnergySaving, "prefill_energy_saving", "%", RunKind::kModel, false,
                true},
};

const MetricFacts& facts_of(Metric metric) {
  for (const MetricFacts& facts : kMetrics) {
    if (facts.metric == metric) return facts;
  }
  return kMetrics.front();
}

Result<Metric> metric_from(Fields& fields) {
  std::vector<std::string> names;
  for (const MetricFacts& facts : kMetrics) names.emplace_back(facts.name);
  ASSIGN_OR_RETURN(const std::string name, fields.choice("metric", names));
  for (const MetricFacts& facts : kMetrics) {
    if (facts.name == name) return facts.metric;
  }
  return make_error(ErrorCode::kInternal, "metric");
}

Result<double> number(Fields& fields, const char* key, double min, double max) {
  ASSIGN_OR_RETURN(const json* value, fields.any(key));
  const double read = value->is_number() ? value->get<double>() : -1;
  // A number that is not finite fails the comparison.
  if (read >= min && read <= max) return read;
  return make_error(ErrorCode::kInvalidData, "description: {} is {}, not a number from {} to {}",
                    fields.path(key), shown(*value), min, max);
}

Result<std::vector<std::string>> names(Fields& fields, const char* key) {
  ASSIGN_OR_RETURN(const json* values, fields.array(key, kMaxList));
  std::vector<std::string> list;
  for (size_t i = 0; i < values->size(); ++i) {
    ASSIGN_OR_RETURN(std::string name,
                     soc::name_from((*values)[i], fmt::format("{}[{}]", fields.path(key), i)));
    list.push_back(std::move(name));
  }
  return list;
}

Result<std::vector<int64_t>> token_counts(Fields& fields, const char* key) {
  ASSIGN_OR_RETURN(const json* values, fields.array(key, kMaxList));
  std::vector<int64_t> list;
  for (size_t i = 0; i < values->size(); ++i) {
    const json& value = (*values)[i];
    const double count = value.is_number_integer() ? value.get<double>() : 0;
    if (count < 1 || count > static_cast<double>(kMaxTokens)) {
      return make_error(ErrorCode::kInvalidData,
                        "description: {}[{}] is {}, not a whole number from 1 to {}",
                        fields.path(key), i, shown(value), kMaxTokens);
    }
    list.push_back(value.get<int64_t>());
  }
  return list;
}

// "4096x14336": outputs, inputs.
Status weight_from(Fields& fields, Run& run) {
  ASSIGN_OR_RETURN(const std::string text, fields.text("weight"));
  const char* end = text.data() + text.size();
  const auto extent = [&](const char* begin, int64_t& out) {
    const auto [stop, error] = std::from_chars(begin, end, out);
    return error == std::errc() && out >= 1 && out <= kMaxExtent ? stop : nullptr;
  };
  const char* times = extent(text.data(), run.outputs);
  if (times != nullptr && times != end && *times == 'x' && extent(times + 1, run.inputs) == end) {
    return {};
  }
  return make_error(ErrorCode::kInvalidData,
                    "description: {} is {}, not outputs and inputs, as in \"4096x14336\"",
                    fields.path("weight"), shown(text));
}

Result<Load> load_from(Fields fields) {
  Load load;
  ASSIGN_OR_RETURN(load.unit, fields.name("unit"));
  ASSIGN_OR_RETURN(load.part, number(fields, "part", 0, 0.99));
  ASSIGN_OR_RETURN(load.gbps, number(fields, "gbps", 0, 1e5));
  RETURN_IF_ERROR(fields.finish());
  return load;
}

// A run while it is read: fields that are missing keep the value of `run`, if it has one.
class RunReader {
 public:
  RunReader(Fields& fields, bool is_other) : fields_(fields), is_other_(is_other) {}

  Status read(const MetricFacts& facts, Run& run) {
    RETURN_IF_ERROR(name("soc", run.soc, true));
    RETURN_IF_ERROR(name("stack", run.stack, false));
    if (facts.kind == RunKind::kChip) return list("units", run.units);
    if (wanted("strategy", true)) {
      ASSIGN_OR_RETURN(run.strategy, fields_.text("strategy"));
    }
    if (facts.of_unit) RETURN_IF_ERROR(name("unit", run.unit, true));
    return facts.kind == RunKind::kProduct ? product(run) : model(run);
  }

 private:
  // Whether the field is to be read: what is needed and missing is an error in its reader.
  bool wanted(const char* key, bool needed) const {
    return fields_.has(key) || (needed && !is_other_);
  }

  Status name(const char* key, std::string& value, bool needed) {
    if (!wanted(key, needed)) return {};
    ASSIGN_OR_RETURN(value, fields_.name(key));
    return {};
  }
  Status list(const char* key, std::vector<std::string>& value) {
    if (!wanted(key, true)) return {};
    ASSIGN_OR_RETURN(value, names(fields_, key));
    return {};
  }

  Status product(Run& run) {
    if (wanted("weight", true)) RETURN_IF_ERROR(weight_from(fields_, run));
    if (!wanted("tokens", true)) return {};
    ASSIGN_OR_RETURN(run.tokens, fields_.integer("tokens", 1, 65536));
    return {};
  }

  Status model(Run& run) {
    RETURN_IF_ERROR(list("shapes", run.shapes));
    if (wanted("prompts", true)) {
      ASSIGN_OR_RETURN(run.prompts, token_counts(fields_, "prompts"));
    }
    if (wanted("output", false)) {
      ASSIGN_OR_RETURN(run.output, fields_.integer("output", 1, kMaxTokens));
    }
    const std::vector<std::string> syncs = {"queue", "predict", "blocking"};
    if (wanted("sync", false)) {
      ASSIGN_OR_RETURN(run.sync, fields_.choice("sync", syncs));
    }
    if (wanted("plan_sync", false)) {
      ASSIGN_OR_RETURN(run.plan_sync, fields_.choice("plan_sync", syncs));
    }
    if (!wanted("load", false)) return {};
    ASSIGN_OR_RETURN(Fields load, fields_.object("load"));
    ASSIGN_OR_RETURN(run.load, load_from(std::move(load)));
    return {};
  }

  Fields& fields_;
  bool is_other_;
};

Result<Run> run_from(Fields fields, const MetricFacts& facts, const Run* base) {
  Run run;
  if (base != nullptr) run = *base;
  RETURN_IF_ERROR(RunReader(fields, base != nullptr).read(facts, run));
  RETURN_IF_ERROR(fields.finish());
  return run;
}

Status figure_from(Fields& fields, const MetricFacts& facts, Case& one) {
  ASSIGN_OR_RETURN(one.published, number(fields, "published", 0, kMaxFigure));
  if (fields.has("published_to")) {
    ASSIGN_OR_RETURN(one.published_to, number(fields, "published_to", one.published, kMaxFigure));
  }
  ASSIGN_OR_RETURN(const std::string unit, fields.choice("unit", {std::string(facts.unit)}));
  ASSIGN_OR_RETURN(const std::string mark, fields.choice("mark", {"printed", "derived"}));
  one.mark = mark == "printed" ? Mark::kPrinted : Mark::kDerived;
  ASSIGN_OR_RETURN(one.calibrated, fields.boolean("calibrated"));
  if (fields.has("described")) {
    ASSIGN_OR_RETURN(one.described, fields.boolean("described"));
  }
  if (fields.has("why_off")) {
    ASSIGN_OR_RETURN(one.why_off, fields.text("why_off"));
  }
  if (fields.has("left_out")) {
    ASSIGN_OR_RETURN(one.left_out, fields.text("left_out"));
  }
  ASSIGN_OR_RETURN(one.source, fields.text("source"));
  if (!one.calibrated || !one.described) return {};
  return make_error(ErrorCode::kInvalidData,
                    "description: {} is true, but {} is true, too: one of them",
                    fields.path("described"), fields.path("calibrated"));
}

std::string text_of(const json& value, const char* key) {
  return value.at(key).dump(-1, ' ', true, json::error_handler_t::replace);
}

Result<Case> case_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Case one;
  ASSIGN_OR_RETURN(one.name, fields.name("case"));
  ASSIGN_OR_RETURN(one.metric, metric_from(fields));
  const MetricFacts& facts = facts_of(one.metric);
  ASSIGN_OR_RETURN(Fields input, fields.object("input"));
  ASSIGN_OR_RETURN(one.input, run_from(std::move(input), facts, nullptr));
  one.input_text = text_of(value, "input");
  // What is left out need not say what it would have been run against.
  if (facts.compares && (fields.has("against") || !fields.has("left_out"))) {
    ASSIGN_OR_RETURN(Fields against, fields.object("against"));
    ASSIGN_OR_RETURN(one.against, run_from(std::move(against), facts, &one.input));
    one.against_text = text_of(value, "against");
  }
  RETURN_IF_ERROR(figure_from(fields, facts, one));
  RETURN_IF_ERROR(fields.finish());
  return one;
}

Result<Paper> paper_from(std::string_view text) {
  ASSIGN_OR_RETURN(const json parsed, soc::parse_strictly(text, kMaxPaperBytes));
  ASSIGN_OR_RETURN(Fields root, Fields::of(parsed, "paper"));
  ASSIGN_OR_RETURN(const int64_t version, root.integer("version", 0, INT32_MAX));
  if (version != kPaperVersion) {
    return make_error(ErrorCode::kUnsupported,
                      "description: version {}, but this build reads version {}", version,
                      kPaperVersion);
  }
  Paper paper;
  ASSIGN_OR_RETURN(paper.name, root.name("paper"));
  ASSIGN_OR_RETURN(paper.title, root.text("title"));
  ASSIGN_OR_RETURN(const json* cases, root.array("cases", kMaxCases));
  std::set<std::string> seen;
  for (size_t i = 0; i < cases->size(); ++i) {
    const std::string at = fmt::format("paper.cases[{}]", i);
    ASSIGN_OR_RETURN(Case one, case_from((*cases)[i], at));
    if (!seen.insert(one.name).second) {
      return make_error(ErrorCode::kInvalidData, "description: {}.case is {}, as of another one",
                        at, one.name);
    }
    paper.cases.push_back(std::move(one));
  }
  RETURN_IF_ERROR(root.finish());
  return paper;
}

}  // namespace

std::string_view to_string(Metric metric) { return facts_of(metric).name; }
std::string_view unit_of(Metric metric) { return facts_of(metric).unit; }
std::string_view to_string(Mark mark) { return mark == Mark::kPrinted ? "printed" : "derived"; }

Result<Paper> from_json(std::string_view text) {
  auto paper = paper_from(text);
  if (paper) return paper;
  // The fields' reader speaks of descriptions of chips.
  constexpr std::string_view kOther = "description: ";
  std::string_view message = paper.error().message;
  if (message.substr(0, kOther.size()) == kOther) message.remove_prefix(kOther.size());
  return make_error(paper.error().code, "published figures: {}", message);
}

}  // namespace troika::published
