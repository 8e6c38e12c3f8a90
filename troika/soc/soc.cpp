#include "troika/soc/soc.h"

#include <algorithm>

#include "troika/soc/fields.h"
#include "troika/soc/unit_fields.h"
#include "troika/soc/validate.h"

namespace troika::soc {
namespace {

using nlohmann::json;

constexpr size_t kMaxSocBytes = size_t{1} << 20;
constexpr size_t kMaxTogether = 32;
constexpr size_t kMaxStacks = 8;
constexpr FigureRange kBits{"bits", 0.5, 64};
constexpr FigureRange kJoules{"J", 0, 1e9};

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
  ASSIGN_OR_RETURN(memory.capacity, fields.optional_figure("capacity", kGigabytes));
  RETURN_IF_ERROR(fields.finish());
  return memory;
}

Result<Sync> sync_from(Fields fields) {
  Sync sync;
  ASSIGN_OR_RETURN(sync.fast, fields.figure("fast", kMicroseconds));
  ASSIGN_OR_RETURN(sync.blocking, fields.figure("blocking", kMicroseconds));
  RETURN_IF_ERROR(fields.finish());
  return sync;
}

Result<std::optional<StoredWeights>> stored_weights_from(Fields& parent) {
  constexpr const char* kKey = "stored_weights";
  if (!parent.has(kKey)) return std::optional<StoredWeights>();
  ASSIGN_OR_RETURN(Fields fields, parent.object(kKey));
  StoredWeights weights;
  ASSIGN_OR_RETURN(weights.bits, fields.figure("bits", kBits));
  ASSIGN_OR_RETURN(weights.head_bits, fields.figure("head_bits", kBits));
  RETURN_IF_ERROR(fields.finish());
  return std::optional<StoredWeights>(std::move(weights));
}

Status chip_costs_from(Fields& root, Soc& soc) {
  ASSIGN_OR_RETURN(Fields sync, root.object("sync"));
  ASSIGN_OR_RETURN(soc.sync, sync_from(std::move(sync)));
  ASSIGN_OR_RETURN(soc.pass_overhead, root.optional_figure("pass_overhead", kMicroseconds));
  ASSIGN_OR_RETURN(soc.stored_weights, stored_weights_from(root));
  ASSIGN_OR_RETURN(soc.idle_power, root.figure("idle_power", kWatts));
  if (!root.has("turbo")) return {};
  ASSIGN_OR_RETURN(Fields turbo, root.object("turbo"));
  soc.turbo.emplace();
  ASSIGN_OR_RETURN(soc.turbo->speed, turbo.figure("speed", kSpeed));
  ASSIGN_OR_RETURN(soc.turbo->budget, turbo.figure("budget", kJoules));
  ASSIGN_OR_RETURN(soc.turbo->power, turbo.optional_figure("power", kSpeed));
  return turbo.finish();
}

// A name, or an object with facts of its own.
Result<StackUnit> stack_unit_from(const json& value, const std::string& at) {
  StackUnit unit;
  if (value.is_object()) {
    ASSIGN_OR_RETURN(unit.unit, unit_from(value, at));
    unit.name = unit.unit->name;
  } else {
    ASSIGN_OR_RETURN(unit.name, name_from(value, at));
  }
  return unit;
}

Result<Stack> stack_from(const json& value, const std::string& at) {
  ASSIGN_OR_RETURN(Fields fields, Fields::of(value, at));
  Stack stack;
  ASSIGN_OR_RETURN(stack.name, fields.name("name"));
  ASSIGN_OR_RETURN(stack.description, fields.text("description"));
  if (fields.has("sync")) {
    ASSIGN_OR_RETURN(Fields sync, fields.object("sync"));
    ASSIGN_OR_RETURN(stack.sync, sync_from(std::move(sync)));
  }
  ASSIGN_OR_RETURN(stack.pass_overhead, fields.optional_figure("pass_overhead", kMicroseconds));
  ASSIGN_OR_RETURN(stack.stored_weights, stored_weights_from(fields));
  ASSIGN_OR_RETURN(const json* units, fields.array("units", kMaxUnits));
  for (size_t i = 0; i < units->size(); ++i) {
    ASSIGN_OR_RETURN(StackUnit unit,
                     stack_unit_from((*units)[i], fmt::format("{}[{}]", fields.path("units"), i)));
    stack.units.push_back(std::move(unit));
  }
  RETURN_IF_ERROR(fields.finish());
  return stack;
}

Status units_and_stacks_from(Fields& root, Soc& soc) {
  ASSIGN_OR_RETURN(const json* units, root.array("units", kMaxUnits));
  for (size_t i = 0; i < units->size(); ++i) {
    ASSIGN_OR_RETURN(Unit unit, unit_from((*units)[i], fmt::format("soc.units[{}]", i)));
    soc.units.push_back(std::move(unit));
  }
  if (!root.has("stacks")) return {};
  ASSIGN_OR_RETURN(const json* stacks, root.array("stacks", kMaxStacks));
  for (size_t i = 0; i < stacks->size(); ++i) {
    ASSIGN_OR_RETURN(Stack stack, stack_from((*stacks)[i], fmt::format("soc.stacks[{}]", i)));
    soc.stacks.push_back(std::move(stack));
  }
  return {};
}

}  // namespace

std::string device_of(const Unit& unit) {
  if (!unit.device.empty()) return unit.device;
  if (unit.kind == UnitKind::kCpu) return "cpu";
  return unit.kind == UnitKind::kGpu ? "opencl" : "";
}

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
  RETURN_IF_ERROR(units_and_stacks_from(root, soc));
  RETURN_IF_ERROR(root.finish());
  RETURN_IF_ERROR(validate(soc));
  return soc;
}

}  // namespace troika::soc
