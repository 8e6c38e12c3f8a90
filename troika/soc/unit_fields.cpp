#include "troika/soc/unit_fields.h"

namespace troika::soc {
namespace {

using nlohmann::json;

constexpr size_t kMaxPaths = 16;
constexpr size_t kMaxTypes = 16;

constexpr FigureRange kBuildBase{"ms", 0, 1e7};
constexpr FigureRange kBuildPerToken{"ms/token", 0, 1e5};
constexpr FigureRange kUnpack{"ns/weight", 0, 1e3};
constexpr FigureRange kTokens{"tokens", 1, static_cast<double>(kMaxExtent), true};
constexpr FigureRange kRowTile{"tokens", 1, 65536, true};
constexpr FigureRange kOutputs{"outputs", 1, 65536, true};
constexpr FigureRange kInputs{"inputs", 1, static_cast<double>(kMaxExtent), true};
constexpr FigureRange kTile{"elements", 1, 65536, true};
constexpr FigureRange kTimes{"times", 0, 1e3};
constexpr FigureRange kStall{"times", 0, 10};
constexpr FigureRange kPart{"times", 0.01, 1};
constexpr FigureRange kTasks{"tasks", 1, 65536, true};
constexpr FigureRange kSessions{"sessions", 1, 1024, true};
constexpr FigureRange kMegabytes{"MB", 0.001, 1e6};

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
  ASSIGN_OR_RETURN(path.row_tile, fields.optional_figure("row_tile", kRowTile));
  ASSIGN_OR_RETURN(path.rate, fields.figure("rate", kRate));
  ASSIGN_OR_RETURN(path.rate_by_tokens,
                   fields.optional_curve("rate_by_tokens", kTokens, kRate, kMaxLengths));
  ASSIGN_OR_RETURN(path.overhead, fields.optional_figure("overhead", kMicroseconds));
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
  ASSIGN_OR_RETURN(power.waiting, fields.optional_figure("waiting", kWatts));
  RETURN_IF_ERROR(fields.finish());
  return power;
}

Result<Cache> cache_from(Fields fields) {
  Cache cache;
  ASSIGN_OR_RETURN(cache.size, fields.figure("size", kMegabytes));
  ASSIGN_OR_RETURN(cache.bandwidth, fields.figure("bandwidth", kBandwidth));
  RETURN_IF_ERROR(fields.finish());
  return cache;
}

// What queues and their switches cost.
Status queue_from(Fields& fields, Unit& unit) {
  ASSIGN_OR_RETURN(unit.launch_queued, fields.figure("launch_queued", kMicroseconds));
  ASSIGN_OR_RETURN(unit.launch_drained, fields.figure("launch_drained", kMicroseconds));
  ASSIGN_OR_RETURN(unit.drained_stall, fields.optional_figure("drained_stall", kStall));
  ASSIGN_OR_RETURN(unit.queue_depth, fields.optional_figure("queue_depth", kTasks));
  ASSIGN_OR_RETURN(unit.datapath_switch, fields.optional_figure("datapath_switch", kMicroseconds));
  ASSIGN_OR_RETURN(unit.weights_switch, fields.optional_figure("weights_switch", kMicroseconds));
  return {};
}

Status limits_from(Fields& fields, Unit& unit) {
  ASSIGN_OR_RETURN(unit.speed_among_others, fields.optional_figure("speed_among_others", kPart));
  ASSIGN_OR_RETURN(unit.turbo_speed, fields.optional_figure("turbo_speed", kSpeed));
  ASSIGN_OR_RETURN(unit.session_memory, fields.optional_figure("session_memory", kGigabytes));
  ASSIGN_OR_RETURN(unit.sessions, fields.optional_figure("sessions", kSessions));
  if (!fields.has("power")) return {};
  ASSIGN_OR_RETURN(Fields power, fields.object("power"));
  ASSIGN_OR_RETURN(unit.power, power_from(std::move(power)));
  return {};
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

}  // namespace

Result<Unit> unit_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Unit unit;
  ASSIGN_OR_RETURN(unit.name, fields.name("name"));
  ASSIGN_OR_RETURN(const std::string kind, fields.choice("kind", {"cpu", "gpu", "npu"}));
  unit.kind = kind == "cpu" ? UnitKind::kCpu : kind == "gpu" ? UnitKind::kGpu : UnitKind::kNpu;
  ASSIGN_OR_RETURN(unit.description, fields.text("description"));
  if (fields.has("device")) {
    ASSIGN_OR_RETURN(unit.device, fields.text("device"));
  }
  if (fields.has("only_products")) {
    ASSIGN_OR_RETURN(unit.only_products, fields.boolean("only_products"));
  }
  ASSIGN_OR_RETURN(unit.bandwidth, fields.figure("bandwidth", kBandwidth));
  RETURN_IF_ERROR(execution_from(fields, unit));
  ASSIGN_OR_RETURN(unit.attention_rate, fields.optional_figure("attention_rate", kRate));
  ASSIGN_OR_RETURN(unit.attention_stream, fields.optional_figure("attention_stream", kBandwidth));
  if (fields.has("cache")) {
    ASSIGN_OR_RETURN(Fields cache, fields.object("cache"));
    ASSIGN_OR_RETURN(unit.cache, cache_from(std::move(cache)));
  }
  ASSIGN_OR_RETURN(unit.elementwise_traffic,
                   fields.optional_figure("elementwise_traffic", kTraffic));
  ASSIGN_OR_RETURN(unit.operator_overhead,
                   fields.optional_figure("operator_overhead", kMicroseconds));
  RETURN_IF_ERROR(queue_from(fields, unit));
  RETURN_IF_ERROR(limits_from(fields, unit));
  RETURN_IF_ERROR(fields.finish());
  return unit;
}

}  // namespace troika::soc
