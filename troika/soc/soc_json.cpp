// A description written back, in the order in which a person reads it.
#include <nlohmann/json.hpp>

#include "troika/soc/soc.h"

namespace troika::soc {
namespace {

using Json = nlohmann::ordered_json;

Json figure(const Figure& figure, const char* unit) {
  return {{"value", figure.value},
          {"unit", unit},
          {"kind", to_string(figure.kind)},
          {"source", figure.source}};
}

void add(Json& object, const char* key, const std::optional<Figure>& value, const char* unit) {
  if (value) object[key] = figure(*value, unit);
}

void add(Json& object, const char* key, const std::optional<FigureCurve>& curve, const char* unit) {
  if (!curve) return;
  object[key] = {{"tokens", curve->tokens},
                 {"values", curve->values},
                 {"unit", unit},
                 {"kind", to_string(curve->kind)},
                 {"source", curve->source}};
}

Json path_json(const Path& path) {
  Json object = {{"types", path.types}};
  if (path.integer) object["integer"] = true;
  if (path.from_tokens > 1) object["from_tokens"] = path.from_tokens;
  if (path.to_tokens > 0) object["to_tokens"] = path.to_tokens;
  add(object, "row_tile", path.row_tile, "tokens");
  object["rate"] = figure(path.rate, "TFLOPS");
  add(object, "rate_by_tokens", path.rate_by_tokens, "TFLOPS");
  add(object, "overhead", path.overhead, "us");
  add(object, "stream", path.stream, "GB/s");
  add(object, "unpack", path.unpack, "ns/weight");
  add(object, "unpack_tokens", path.unpack_tokens, "tokens");
  object["alone"] = figure(path.alone, "us");
  return object;
}

Json static_json(const StaticGraphs& graphs) {
  Json object = {{"tile", figure(graphs.tile, "elements")},
                 {"standard_lengths",
                  {{"values", graphs.standard_lengths.values},
                   {"unit", "tokens"},
                   {"kind", to_string(graphs.standard_lengths.kind)},
                   {"source", graphs.standard_lengths.source}}},
                 {"build_base", figure(graphs.build_base, "ms")},
                 {"build_per_token", figure(graphs.build_per_token, "ms/token")}};
  add(object, "full_rate_inputs", graphs.full_rate_inputs, "inputs");
  add(object, "weight_stationary", graphs.weight_stationary, "times");
  return object;
}

Json unit_json(const Unit& unit) {
  Json object = {
      {"name", unit.name}, {"kind", to_string(unit.kind)}, {"description", unit.description}};
  if (!unit.device.empty()) object["device"] = unit.device;
  if (unit.only_products) object["only_products"] = true;
  object["bandwidth"] = figure(unit.bandwidth, "GB/s");
  object["law"] = to_string(unit.law);
  if (unit.static_graphs) object["static_graphs"] = static_json(*unit.static_graphs);
  if (unit.quanta) {
    object["quanta"] = {{"tokens", figure(unit.quanta->tokens, "tokens")},
                        {"outputs", figure(unit.quanta->outputs, "outputs")},
                        {"inputs", figure(unit.quanta->inputs, "inputs")}};
  }
  for (const Path& path : unit.paths) object["paths"].push_back(path_json(path));
  add(object, "attention_rate", unit.attention_rate, "TFLOPS");
  add(object, "attention_stream", unit.attention_stream, "GB/s");
  if (unit.cache) {
    object["cache"] = {{"size", figure(unit.cache->size, "MB")},
                       {"bandwidth", figure(unit.cache->bandwidth, "GB/s")}};
  }
  add(object, "elementwise_traffic", unit.elementwise_traffic, "times");
  add(object, "operator_overhead", unit.operator_overhead, "us");
  object["launch_queued"] = figure(unit.launch_queued, "us");
  object["launch_drained"] = figure(unit.launch_drained, "us");
  add(object, "drained_stall", unit.drained_stall, "times");
  add(object, "queue_depth", unit.queue_depth, "tasks");
  add(object, "datapath_switch", unit.datapath_switch, "us");
  add(object, "weights_switch", unit.weights_switch, "us");
  add(object, "speed_among_others", unit.speed_among_others, "times");
  add(object, "turbo_speed", unit.turbo_speed, "times");
  add(object, "session_memory", unit.session_memory, "GB");
  add(object, "sessions", unit.sessions, "sessions");
  if (unit.power) {
    object["power"] = {{"compute", figure(unit.power->compute, "W")},
                       {"memory", figure(unit.power->memory, "W")}};
    add(object["power"], "waiting", unit.power->waiting, "W");
  }
  return object;
}

Json sync_json(const Sync& sync) {
  return {{"fast", figure(sync.fast, "us")}, {"blocking", figure(sync.blocking, "us")}};
}

void add(Json& object, const std::optional<StoredWeights>& weights) {
  if (!weights) return;
  object["stored_weights"] = {{"bits", figure(weights->bits, "bits")},
                              {"head_bits", figure(weights->head_bits, "bits")}};
}

Json stack_json(const Stack& stack) {
  Json object = {{"name", stack.name}, {"description", stack.description}};
  if (stack.sync) object["sync"] = sync_json(*stack.sync);
  add(object, "pass_overhead", stack.pass_overhead, "us");
  add(object, stack.stored_weights);
  for (const StackUnit& unit : stack.units) {
    object["units"].push_back(unit.unit ? unit_json(*unit.unit) : Json(unit.name));
  }
  return object;
}

}  // namespace

std::string to_json(const Soc& soc) {
  Json object = {{"version", kSocVersion},
                 {"name", soc.name},
                 {"description", soc.description},
                 {"stack", soc.stack}};
  Json& memory = object["memory"];
  memory["peak"] = figure(soc.memory.peak, "GB/s");
  memory["reachable"] = figure(soc.memory.reachable, "GB/s");
  for (const Together& together : soc.memory.together) {
    memory["together"].push_back(
        {{"units", together.units}, {"bandwidth", figure(together.bandwidth, "GB/s")}});
  }
  add(memory, "capacity", soc.memory.capacity, "GB");
  object["sync"] = sync_json(soc.sync);
  add(object, "pass_overhead", soc.pass_overhead, "us");
  add(object, soc.stored_weights);
  object["idle_power"] = figure(soc.idle_power, "W");
  if (soc.turbo) {
    object["turbo"] = {{"speed", figure(soc.turbo->speed, "times")},
                       {"budget", figure(soc.turbo->budget, "J")}};
    add(object["turbo"], "power", soc.turbo->power, "times");
  }
  for (const Unit& unit : soc.units) object["units"].push_back(unit_json(unit));
  for (const Stack& stack : soc.stacks) object["stacks"].push_back(stack_json(stack));
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troika::soc
