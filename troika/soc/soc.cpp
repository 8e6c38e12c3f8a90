#include "troika/soc/soc.h"

#include <algorithm>

#include "troika/soc/fields.h"
#include "troika/soc/validate.h"

namespace troika::soc {
namespace {

using nlohmann::json;

constexpr size_t kMaxSocBytes = size_t{1} << 20;
constexpr size_t kMaxPaths = 16;
constexpr size_t kMaxTypes = 16;
constexpr size_t kMaxTogether = 32;
constexpr size_t kMaxLengths = 64;

// Wide enough for any chip, narrow enough that no cost overflows or divides by nothing.
constexpr FigureRange kBandwidth{"GB/s", 0.001, 1e5};
constexpr FigureRange kRate{"TFLOPS", 1e-6, 1e5};
constexpr FigureRange kMicroseconds{"us", 0, 1e7};
constexpr FigureRange kBuildBase{"ms", 0, 1e7};
constexpr FigureRange kBuildPerToken{"ms/token", 0, 1e5};
constexpr FigureRange kUnpack{"ns/weight", 0, 1e3};
constexpr FigureRange kTokens{"tokens", 1, static_cast<double>(kMaxExtent), true};
constexpr FigureRange kOutputs{"outputs", 1, 65536, true};
constexpr FigureRange kInputs{"inputs", 1, static_cast<double>(kMaxExtent), true};
constexpr FigureRange kTile{"elements", 1, 65536, true};
constexpr FigureRange kTimes{"times", 0, 1e3};
constexpr FigureRange kSpeed{"times", 1, 100};
constexpr FigureRange kPart{"times", 0.01, 1};
constexpr FigureRange kWatts{"W", 0, 1e4};
constexpr FigureRange kJoules{"J", 0, 1e9};

Result<StaticGraphs> static_graphs_from(Fields fields) {
  StaticGraphs graphs;
  ASSIGN_OR_RETURN(graphs.tile, fields.figure("tile", kTile));
  ASSIGN_OR_RETURN(graphs.standard_lengths,
                   fields.figures("standard_lengths", kTokens, kMaxLengths));
  ASSIGN_OR_RETURN(graphs.build_base, fields.figure("build_base", kBuildBase));
  ASSIGN_OR_RETURN(graphs.build_per_token, fields.figure("build_per_token", kBuildPerToken));
  ASSIGN_OR_RETURN(graphs.full_rate_inputs, fields.optional_figure("full_rate_inputs", kInputs));
  ASSIGN_OR_RETURN(graphs.weight_stationary, fields.optional_figure("weight_stationary", kTimes));
  RETURN_IF_ERROR(fields.finish());
  return graphs;
}

Result<Quanta> quanta_from(Fields fields) {
  Quanta quanta;
  ASSIGN_OR_RETURN(quanta.tokens, fields.figure("tokens", kTokens));
  ASSIGN_OR_RETURN(quanta.outputs, fields.figure("outputs", kOutputs));
  ASSIGN_OR_RETURN(quanta.inputs, fields.figure("inputs", kInputs));
  RETURN_IF_ERROR(fields.finish());
  return quanta;
}

Result<Path> path_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Path path;
  ASSIGN_OR_RETURN(const json* types, fields.array("types", kMaxTypes));
  for (size_t i = 0; i < types->size(); ++i) {
    ASSIGN_OR_RETURN(std::string type,
                     name_from((*types)[i], fmt::format("{}[{}]", fields.path("types"), i)));
    path.types.push_back(std::move(type));
  }
  if (fields.has("integer")) {
    ASSIGN_OR_RETURN(path.integer, fields.boolean("integer"));
  }
  if (fields.has("from_tokens")) {
    ASSIGN_OR_RETURN(path.from_tokens, fields.integer("from_tokens", 1, kMaxExtent));
  }
  if (fields.has("to_tokens")) {
    ASSIGN_OR_RETURN(path.to_tokens, fields.integer("to_tokens", path.from_tokens, kMaxExtent));
  }
  ASSIGN_OR_RETURN(path.rate, fields.figure("rate", kRate));
  ASSIGN_OR_RETURN(path.stream, fields.optional_figure("stream", kBandwidth));
  ASSIGN_OR_RETURN(path.unpack, fields.optional_figure("unpack", kUnpack));
  ASSIGN_OR_RETURN(path.unpack_tokens, fields.optional_figure("unpack_tokens", kTokens));
  ASSIGN_OR_RETURN(path.alone, fields.figure("alone", kMicroseconds));
  RETURN_IF_ERROR(fields.finish());
  return path;
}

Result<ActivePower> power_from(Fields fields) {
  ActivePower power;
  ASSIGN_OR_RETURN(power.compute, fields.figure("compute", kWatts));
  ASSIGN_OR_RETURN(power.memory, fields.figure("memory", kWatts));
  RETURN_IF_ERROR(fields.finish());
  return power;
}

Result<Law> law_from(Fields& fields) {
  ASSIGN_OR_RETURN(const std::string name, fields.choice("law", {"linear", "static", "quanta"}));
  return name == "linear" ? Law::kLinear : name == "static" ? Law::kStatic : Law::kQuanta;
}

Status execution_from(Fields& fields, Unit& unit) {
  ASSIGN_OR_RETURN(unit.law, law_from(fields));
  // The block of another law would be an unknown field.
  if (unit.law == Law::kStatic) {
    ASSIGN_OR_RETURN(Fields graphs, fields.object("static_graphs"));
    ASSIGN_OR_RETURN(unit.static_graphs, static_graphs_from(std::move(graphs)));
  }
  if (unit.law == Law::kQuanta) {
    ASSIGN_OR_RETURN(Fields quanta, fields.object("quanta"));
    ASSIGN_OR_RETURN(unit.quanta, quanta_from(std::move(quanta)));
  }
  if (!fields.has("paths")) return {};
  ASSIGN_OR_RETURN(const json* paths, fields.array("paths", kMaxPaths));
  for (size_t i = 0; i < paths->size(); ++i) {
    ASSIGN_OR_RETURN(Path path,
                     path_from((*paths)[i], fmt::format("{}[{}]", fields.path("paths"), i)));
    unit.paths.push_back(std::move(path));
  }
  return {};
}

Result<Unit> unit_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Unit unit;
  ASSIGN_OR_RETURN(unit.name, fields.name("name"));
  ASSIGN_OR_RETURN(const std::string kind, fields.choice("kind", {"cpu", "gpu", "npu"}));
  unit.kind = kind == "cpu" ? UnitKind::kCpu : kind == "gpu" ? UnitKind::kGpu : UnitKind::kNpu;
  ASSIGN_OR_RETURN(unit.description, fields.text("description"));
  if (fields.has("only_products")) {
    ASSIGN_OR_RETURN(unit.only_products, fields.boolean("only_products"));
  }
  ASSIGN_OR_RETURN(unit.bandwidth, fields.figure("bandwidth", kBandwidth));
  RETURN_IF_ERROR(execution_from(fields, unit));
  ASSIGN_OR_RETURN(unit.attention_rate, fields.optional_figure("attention_rate", kRate));
  ASSIGN_OR_RETURN(unit.launch_queued, fields.figure("launch_queued", kMicroseconds));
  ASSIGN_OR_RETURN(unit.launch_drained, fields.figure("launch_drained", kMicroseconds));
  ASSIGN_OR_RETURN(unit.datapath_switch, fields.optional_figure("datapath_switch", kMicroseconds));
  ASSIGN_OR_RETURN(unit.speed_among_others, fields.optional_figure("speed_among_others", kPart));
  if (fields.has("power")) {
    ASSIGN_OR_RETURN(Fields power, fields.object("power"));
    ASSIGN_OR_RETURN(unit.power, power_from(std::move(power)));
  }
  RETURN_IF_ERROR(fields.finish());
  return unit;
}

Result<Together> together_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Together together;
  ASSIGN_OR_RETURN(const json* units, fields.array("units", kMaxUnits));
  for (size_t i = 0; i < units->size(); ++i) {
    ASSIGN_OR_RETURN(std::string name,
                     name_from((*units)[i], fmt::format("{}[{}]", fields.path("units"), i)));
    together.units.push_back(std::move(name));
  }
  ASSIGN_OR_RETURN(together.bandwidth, fields.figure("bandwidth", kBandwidth));
  RETURN_IF_ERROR(fields.finish());
  return together;
}

Result<Memory> memory_from(Fields fields) {
  Memory memory;
  ASSIGN_OR_RETURN(memory.peak, fields.figure("peak", kBandwidth));
  ASSIGN_OR_RETURN(memory.reachable, fields.figure("reachable", kBandwidth));
  if (fields.has("together")) {
    ASSIGN_OR_RETURN(const json* entries, fields.array("together", kMaxTogether));
    for (size_t i = 0; i < entries->size(); ++i) {
      ASSIGN_OR_RETURN(
          Together together,
          together_from((*entries)[i], fmt::format("{}[{}]", fields.path("together"), i)));
      memory.together.push_back(std::move(together));
    }
  }
  RETURN_IF_ERROR(fields.finish());
  return memory;
}

Status chip_costs_from(Fields& root, Soc& soc) {
  ASSIGN_OR_RETURN(Fields sync, root.object("sync"));
  ASSIGN_OR_RETURN(soc.sync.fast, sync.figure("fast", kMicroseconds));
  ASSIGN_OR_RETURN(soc.sync.blocking, sync.figure("blocking", kMicroseconds));
  RETURN_IF_ERROR(sync.finish());
  ASSIGN_OR_RETURN(soc.idle_power, root.figure("idle_power", kWatts));
  if (!root.has("turbo")) return {};
  ASSIGN_OR_RETURN(Fields turbo, root.object("turbo"));
  soc.turbo.emplace();
  ASSIGN_OR_RETURN(soc.turbo->speed, turbo.figure("speed", kSpeed));
  ASSIGN_OR_RETURN(soc.turbo->budget, turbo.figure("budget", kJoules));
  return turbo.finish();
}

}  // namespace

std::string_view to_string(UnitKind kind) {
  switch (kind) {
    case UnitKind::kCpu:
      return "cpu";
    case UnitKind::kGpu:
      return "gpu";
    case UnitKind::kNpu:
      return "npu";
  }
  return "";
}

std::string_view to_string(Law law) {
  switch (law) {
    case Law::kLinear:
      return "linear";
    case Law::kStatic:
      return "static";
    case Law::kQuanta:
      return "quanta";
  }
  return "";
}

std::optional<size_t> Soc::unit(std::string_view unit_name) const {
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i].name == unit_name) return i;
  }
  return std::nullopt;
}

Result<Soc> from_json(std::string_view text) {
  ASSIGN_OR_RETURN(const json parsed, parse_strictly(text, kMaxSocBytes));
  ASSIGN_OR_RETURN(Fields root, Fields::of(parsed, "soc"));
  ASSIGN_OR_RETURN(const int64_t version, root.integer("version", 0, INT32_MAX));
  if (version != kSocVersion) {
    return make_error(ErrorCode::kUnsupported,
                      "description: version {}, but this build reads version {}", version,
                      kSocVersion);
  }
  Soc soc;
  ASSIGN_OR_RETURN(soc.name, root.name("name"));
  ASSIGN_OR_RETURN(soc.description, root.text("description"));
  ASSIGN_OR_RETURN(soc.stack, root.text("stack"));
  ASSIGN_OR_RETURN(Fields memory, root.object("memory"));
  ASSIGN_OR_RETURN(soc.memory, memory_from(std::move(memory)));
  RETURN_IF_ERROR(chip_costs_from(root, soc));
  ASSIGN_OR_RETURN(const json* units, root.array("units", kMaxUnits));
  for (size_t i = 0; i < units->size(); ++i) {
    ASSIGN_OR_RETURN(Unit unit, unit_from((*units)[i], fmt::format("soc.units[{}]", i)));
    soc.units.push_back(std::move(unit));
  }
  RETURN_IF_ERROR(root.finish());
  RETURN_IF_ERROR(validate(soc));
  return soc;
}

}  // namespace troika::soc
