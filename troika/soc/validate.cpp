#include "troika/soc/validate.h"

#include <algorithm>
#include <array>
#include <set>

namespace troika::soc {
namespace {

struct Type {
  std::string_view name;
  int weight_bits;
};
constexpr std::array kTypes = {Type{"w4a16", 4}, Type{"w4a8", 4}, Type{"w8a16", 8}, Type{"w8a8", 8},
                               Type{"w16a16", 16}};

int64_t last_token(const Path& path) { return path.to_tokens == 0 ? kMaxExtent : path.to_tokens; }

// A product must find one path at most.
bool compete(const Path& a, const Path& b) {
  const bool overlap = a.from_tokens <= last_token(b) && b.from_tokens <= last_token(a);
  const bool common = std::any_of(a.types.begin(), a.types.end(), [&](const std::string& type) {
    return std::find(b.types.begin(), b.types.end(), type) != b.types.end();
  });
  return overlap && common;
}

Status check_paths(const Unit& unit, const std::string& at) {
  for (size_t i = 0; i < unit.paths.size(); ++i) {
    const Path& path = unit.paths[i];
    for (size_t t = 0; t < path.types.size(); ++t) {
      if (weight_bits(path.types[t])) continue;
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.paths[{}].types[{}] is \"{}\", not w4a16, w4a8, w8a16, "
                        "w8a8 or w16a16",
                        at, i, t, path.types[t]);
    }
    if (path.stream && *path.stream > unit.bandwidth) {
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.paths[{}].stream is {} GB/s, more than {}.bandwidth, {}",
                        at, i, path.stream->value, at, unit.bandwidth.value);
    }
    for (size_t r = 0; path.rate_by_tokens && r < path.rate_by_tokens->values.size(); ++r) {
      if (path.rate_by_tokens->values[r] <= path.rate) continue;
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.paths[{}].rate_by_tokens.values[{}] is {} TFLOPS, more "
                        "than the path's rate, {}",
                        at, i, r, path.rate_by_tokens->values[r], path.rate.value);
    }
    if (path.unpack.has_value() != path.unpack_tokens.has_value()) {
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.paths[{}] has one of unpack and unpack_tokens, but not "
                        "the other",
                        at, i);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!compete(unit.paths[j], path)) continue;
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.paths[{}] and paths[{}] serve the same tokens and type",
                        at, j, i);
    }
  }
  return {};
}

Status check_unit(const Unit& unit, const Memory& memory, const std::string& at) {
  if (unit.bandwidth > memory.reachable) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.bandwidth is {} GB/s, more than soc.memory.reachable, {}",
                      at, unit.bandwidth.value, memory.reachable.value);
  }
  if (unit.cache && unit.cache->bandwidth < unit.bandwidth) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.cache.bandwidth is {} GB/s, less than {}.bandwidth, {}", at,
                      unit.cache->bandwidth.value, at, unit.bandwidth.value);
  }
  if (unit.attention_stream && !unit.attention_rate) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.attention_stream needs {}.attention_rate beside it", at, at);
  }
  if (unit.attention_stream && *unit.attention_stream > unit.bandwidth) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.attention_stream is {} GB/s, more than {}.bandwidth, {}", at,
                      unit.attention_stream->value, at, unit.bandwidth.value);
  }
  if (unit.sessions && !unit.session_memory) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.sessions needs {}.session_memory beside it", at, at);
  }
  return check_paths(unit, at);
}

Status check_units(const Soc& soc) {
  std::set<std::string> names;
  bool computes = false;
  for (size_t i = 0; i < soc.units.size(); ++i) {
    const Unit& unit = soc.units[i];
    const std::string at = fmt::format("soc.units[{}]", i);
    if (!names.insert(unit.name).second) {
      return make_error(ErrorCode::kInvalidData, "description: {}.name is {}, as of another unit",
                        at, unit.name);
    }
    RETURN_IF_ERROR(check_unit(unit, soc.memory, at));
    computes = computes || !unit.paths.empty();
  }
  if (computes) return {};
  return make_error(ErrorCode::kInvalidData, "description: soc.units has no unit with paths");
}

// What several units reach together is no less than one of them alone.
Status check_least(const Soc& soc, const Unit& unit, const std::string& at) {
  for (const Together& together : soc.memory.together) {
    const auto& names = together.units;
    if (std::find(names.begin(), names.end(), unit.name) == names.end()) continue;
    if (together.bandwidth >= unit.bandwidth) continue;
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.bandwidth is {} GB/s, more than it reaches with others, {}",
                      at, unit.bandwidth.value, together.bandwidth.value);
  }
  return {};
}

Status check_stack(const Soc& soc, const Stack& stack, const std::string& at) {
  if (stack.sync && stack.sync->fast > stack.sync->blocking) {
    return make_error(ErrorCode::kInvalidData,
                      "description: {}.sync.fast is {} us, more than {}.sync.blocking, {}", at,
                      stack.sync->fast.value, at, stack.sync->blocking.value);
  }
  std::set<std::string> names;
  bool computes = false;
  for (size_t i = 0; i < stack.units.size(); ++i) {
    const StackUnit& one = stack.units[i];
    const std::string place = fmt::format("{}.units[{}]", at, i);
    const auto own = soc.unit(one.name);
    if (!own) {
      return make_error(ErrorCode::kInvalidData, "description: {}: no unit is called {}", place,
                        one.name);
    }
    if (!names.insert(one.name).second) {
      return make_error(ErrorCode::kInvalidData, "description: {} is {}, as another one", place,
                        one.name);
    }
    const Unit& unit = one.unit ? *one.unit : soc.units[*own];
    if (one.unit) {
      RETURN_IF_ERROR(check_unit(unit, soc.memory, place));
      RETURN_IF_ERROR(check_least(soc, unit, place));
    }
    computes = computes || !unit.paths.empty();
  }
  if (computes) return {};
  return make_error(ErrorCode::kInvalidData, "description: {}.units has no unit with paths", at);
}

Status check_stacks(const Soc& soc) {
  std::set<std::string> names = {"default"};
  for (size_t i = 0; i < soc.stacks.size(); ++i) {
    const std::string at = fmt::format("soc.stacks[{}]", i);
    if (!names.insert(soc.stacks[i].name).second) {
      return make_error(ErrorCode::kInvalidData, "description: {}.name is {}, as of another stack",
                        at, soc.stacks[i].name);
    }
    RETURN_IF_ERROR(check_stack(soc, soc.stacks[i], at));
  }
  return {};
}

Status check_together(const Soc& soc) {
  std::set<std::set<std::string>> seen;
  for (size_t i = 0; i < soc.memory.together.size(); ++i) {
    const Together& together = soc.memory.together[i];
    const std::string at = fmt::format("soc.memory.together[{}]", i);
    const std::set<std::string> names(together.units.begin(), together.units.end());
    double least = 0;
    for (const std::string& name : names) {
      const auto unit = soc.unit(name);
      if (!unit) {
        return make_error(ErrorCode::kInvalidData, "description: {}.units: no unit is called {}",
                          at, name);
      }
      least = std::max(least, soc.units[*unit].bandwidth.value);
    }
    if (names.size() < 2 || names.size() != together.units.size() || !seen.insert(names).second) {
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.units must be two or more different units, once", at);
    }
    if (together.bandwidth < least || together.bandwidth > soc.memory.reachable) {
      return make_error(ErrorCode::kInvalidData,
                        "description: {}.bandwidth is {} GB/s, not between {} of one of them alone "
                        "and soc.memory.reachable, {}",
                        at, together.bandwidth.value, least, soc.memory.reachable.value);
    }
  }
  return {};
}

}  // namespace

std::optional<int> weight_bits(std::string_view type) {
  for (const Type& known : kTypes) {
    if (known.name == type) return known.weight_bits;
  }
  return std::nullopt;
}

Status validate(const Soc& soc) {
  if (soc.memory.reachable > soc.memory.peak) {
    return make_error(ErrorCode::kInvalidData,
                      "description: soc.memory.reachable is {} GB/s, more than the peak, {}",
                      soc.memory.reachable.value, soc.memory.peak.value);
  }
  if (soc.sync.fast > soc.sync.blocking) {
    return make_error(ErrorCode::kInvalidData,
                      "description: soc.sync.fast is {} us, more than soc.sync.blocking, {}",
                      soc.sync.fast.value, soc.sync.blocking.value);
  }
  RETURN_IF_ERROR(check_units(soc));
  RETURN_IF_ERROR(check_together(soc));
  return check_stacks(soc);
}

}  // namespace troika::soc
