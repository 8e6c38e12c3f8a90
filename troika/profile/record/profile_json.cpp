// A profile as JSON, written and read by the same lists of fields.
#include <algorithm>

#include "troika/base/json_text.h"
#include "troika/profile/record/json_visitors.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {
namespace {

using nlohmann::json;

constexpr JsonBounds kBounds{12, 400'000, 60};
constexpr size_t kMaxPoints = 20'000;
constexpr double kMaxUs = 1e10;  // almost three hours
constexpr double kMaxGbps = 1e6;
constexpr int64_t kMaxBytes = int64_t{1} << 50;

const auto sample = [](auto& v, Sample& s) {
  v.number("median_us", s.median_us, 0, kMaxUs);
  v.number("deviation_us", s.deviation_us, 0, kMaxUs);
  v.integer("repeats", s.repeats, 1, 1'000'000);
};

// An enumeration travels as a text.
template <class Visitor>
void order(Visitor& v, Order& value) {
  std::string name(to_string(value));
  v.choice("in_place", name, {"weight", "input"});
  value = name == "input" ? Order::kInputInPlace : Order::kWeightInPlace;
}

const auto product = [](auto& v, ProductPoint& p) {
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("n", p.n, 1, kMaxExtent);
  v.integer("k", p.k, 1, kMaxExtent);
  v.text("type", p.type);
  v.number("weight_bits", p.weight_bits, 0.5, 64);
  order(v, p.order);
  v.object("time", p.time, sample);
};

const auto attention = [](auto& v, AttentionPoint& p) {
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("depth_tokens", p.depth, 0, kMaxExtent);
  v.integer("n_heads", p.n_heads, 1, kMaxExtent);
  v.integer("n_kv_heads", p.n_kv_heads, 1, kMaxExtent);
  v.integer("head_dim", p.head_dim, 1, kMaxExtent);
  v.choice("kv_type", p.kv_type, {"f32", "f16"});
  v.object("time", p.time, sample);
};

const auto elementwise = [](auto& v, ElementwisePoint& p) {
  v.text("op", p.op);
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("width", p.width, 1, kMaxExtent);
  v.number("moved_bytes", p.bytes, 0, 1e15);
  v.object("time", p.time, sample);
};

const auto layer = [](auto& v, LayerPoint& p) {
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("depth_tokens", p.depth, 0, kMaxExtent);
  v.object("time", p.time, sample);
};

const auto build = [](auto& v, BuildPoint& p) {
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("n", p.n, 1, kMaxExtent);
  v.integer("k", p.k, 1, kMaxExtent);
  v.number("build_us", p.build_us, 0, kMaxUs);
  v.integer("kept_bytes", p.kept_bytes, 0, kMaxBytes);
};

const auto launch = [](auto& v, LaunchCosts& c) {
  v.number("submit_us", c.submit_us, 0, kMaxUs);
  v.number("drained_us", c.drained_us, 0, kMaxUs);
  v.number("queued_us", c.queued_us, 0, kMaxUs);
  v.number("task_us", c.task_us, 0, kMaxUs);
  v.number("notice_us", c.notice_us, 0, kMaxUs);
};

const auto check = [](auto& v, CheckPoint& p) {
  v.integer("rows", p.rows, 1, kMaxExtent);
  v.integer("n", p.n, 1, kMaxExtent);
  v.integer("k", p.k, 1, kMaxExtent);
  order(v, p.order);
  v.number("measured_us", p.measured_us, 0, kMaxUs);
  v.number("predicted_us", p.predicted_us, 0, kMaxUs);
};

const auto fact = [](auto& v, std::pair<std::string, std::string>& f) {
  v.text("name", f.first);
  v.text("value", f.second);
};

const auto device = [](auto& v, DeviceProfile& d) {
  v.text("name", d.name);
  v.choice("kind", d.kind, {"cpu", "gpu", "npu"});
  v.text("description", d.description);
  v.text("version", d.version);
  v.list("facts", d.facts, 100, fact);
  v.integers("cores", d.cores, 4096, 0, 1 << 20);
  v.integer("threads", d.threads, 0, 1 << 20);
  v.integers("standard_rows", d.standard_rows, 256, 1, kMaxExtent);
  v.integer("n_cut", d.n_cut, 1, kMaxExtent);
  v.integer("k_cut", d.k_cut, 1, kMaxExtent);
  v.boolean("exact", d.exact);
  v.boolean("unified_memory", d.unified_memory);
  v.boolean("int8_inputs", d.int8_inputs);
  v.integer("row_tile", d.row_tile, 1, 65536);
  v.integer("n_tile", d.n_tile, 1, 65536);
  v.integer("k_tile", d.k_tile, 1, 65536);
  v.boolean("chooses_order", d.chooses_order);
  v.number("read_gbps", d.read_gbps, 0, kMaxGbps);
  v.number("copy_gbps", d.copy_gbps, 0, kMaxGbps);
  v.object("launch", d.launch, launch);
  v.list("products", d.products, kMaxPoints, product);
  v.list("attention", d.attention, kMaxPoints, attention);
  v.list("elementwise", d.elementwise, kMaxPoints, elementwise);
  v.list("layers", d.layers, kMaxPoints, layer);
  v.list("builds", d.builds, kMaxPoints, build);
  v.list("checks", d.checks, kMaxPoints, check);
};

const auto pair = [](auto& v, PairProfile& p) {
  v.text("first", p.first);
  v.text("second", p.second);
  v.number("first_keeps", p.first_keeps, 0, 1);
  v.number("second_keeps", p.second_keeps, 0, 1);
  v.number("together_gbps", p.together_gbps, 0, kMaxGbps);
  v.number("join_us", p.join_us, 0, kMaxUs);
  v.number("blocking_join_us", p.blocking_join_us, 0, kMaxUs);
};

const auto meter = [](auto& v, PowerMeter& m) {
  v.text("name", m.name);
  v.choice("kind", m.kind, {"powercap", "hwmon", "battery"});
  v.number("mean_w", m.mean_w, 0, 1e5);
};

const auto machine = [](auto& v, Machine& m) {
  v.text("cpu", m.cpu);
  v.integer("cores", m.cores, 0, 1 << 20);
  v.text("governor", m.governor);
  v.text("power_profile", m.power_profile);
  v.choice("power_source", m.power_source, {"unknown", "ac", "battery"});
  v.number("clock_mhz", m.clock_mhz, 0, 1e6);
  v.list("meters", m.meters, 100, meter);
};

const auto model = [](auto& v, ProfiledModel& m) {
  v.text("name", m.name);
  v.text("type", m.type);
  v.integer("n_layers", m.n_layers, 1, 1 << 20);
  v.integer("hidden", m.hidden, 1, kMaxExtent);
  v.integer("n_heads", m.n_heads, 1, kMaxExtent);
  v.integer("n_kv_heads", m.n_kv_heads, 1, kMaxExtent);
  v.integer("head_dim", m.head_dim, 1, kMaxExtent);
  v.integer("ffn", m.ffn, 1, kMaxExtent);
  v.integer("n_vocab", m.n_vocab, 1, kMaxExtent);
  v.choice("kv_type", m.kv_type, {"f32", "f16"});
};

template <class Visitor>
void visit(Visitor& v, Profile& p) {
  int64_t version = kProfileVersion;
  v.integer("version", version, 1, 1 << 20);
  v.text("build", p.build);
  v.integer("time", p.time, 0, int64_t{1} << 40);
  v.boolean("complete", p.complete);
  v.number("took_s", p.took_s, 0, 1e7);
  v.object("machine", p.machine, machine);
  v.object("model", p.model, model);
  v.list("devices", p.devices, kMaxProfiledDevices, device);
  v.list("pairs", p.pairs, kMaxProfiledDevices * kMaxProfiledDevices, pair);
}

Result<json> parse(std::string_view text) {
  if (text.size() > kMaxProfileBytes) {
    return make_error(ErrorCode::kInvalidData, "profile: {} bytes, more than {}", text.size(),
                      kMaxProfileBytes);
  }
  RETURN_IF_ERROR(check_json_size(text, "profile", kBounds));
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) {
    return make_error(ErrorCode::kInvalidData, "profile: not valid JSON, or cut off");
  }
  if (const auto twice = repeated_json_key(text)) {
    return make_error(ErrorCode::kInvalidData, "profile: key {} stands twice in one object",
                      shown(*twice));
  }
  return root;
}

Status check_version(const json& root) {
  const auto found = root.is_object() ? root.find("version") : root.end();
  if (!root.is_object() || found == root.end() || !found->is_number_integer() ||
      *found == kProfileVersion) {
    return {};  // what is wrong with it is told by the reader
  }
  return make_error(ErrorCode::kUnsupported, "profile: version is {}, this program reads {}",
                    shown(*found), kProfileVersion);
}

Status check_names(const Profile& profile) {
  for (size_t i = 0; i < profile.devices.size(); ++i) {
    const std::string& name = profile.devices[i].name;
    if (!name.empty() && profile.device(name) == &profile.devices[i]) continue;
    return make_error(ErrorCode::kInvalidData,
                      "profile: profile.devices[{}].name is \"{}\", empty or as of another device",
                      i, name);
  }
  for (size_t i = 0; i < profile.pairs.size(); ++i) {
    const PairProfile& one = profile.pairs[i];
    if (one.first != one.second && profile.device(one.first) != nullptr &&
        profile.device(one.second) != nullptr) {
      continue;
    }
    return make_error(ErrorCode::kInvalidData,
                      "profile: profile.pairs[{}] is of \"{}\" and \"{}\", not of two of the "
                      "devices",
                      i, one.first, one.second);
  }
  return {};
}

}  // namespace

Result<Profile> from_json(std::string_view text) {
  ASSIGN_OR_RETURN(const json root, parse(text));
  RETURN_IF_ERROR(check_version(root));
  Profile profile;
  JsonReader reader(root, "profile");
  visit(reader, profile);
  RETURN_IF_ERROR(reader.finish());
  RETURN_IF_ERROR(check_names(profile));
  return profile;
}

std::string to_json(const Profile& profile) {
  JsonWriter writer;
  Profile copy = profile;  // one list of fields serves reading too, which changes them
  visit(writer, copy);
  return writer.json().dump(1, ' ', true, json::error_handler_t::replace);
}

std::string json_schema() {
  JsonSchema fields;
  Profile empty;
  visit(fields, empty);
  JsonSchema::Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Profile of a machine's devices";
  schema["description"] = "What troika profile measured; see docs/profiling.md";
  const JsonSchema::Json object = fields.json();
  for (const auto& [key, value] : object.items()) schema[key] = value;
  schema["properties"]["version"] = {{"const", kProfileVersion}};
  return schema.dump(1);
}

}  // namespace troika::profile
