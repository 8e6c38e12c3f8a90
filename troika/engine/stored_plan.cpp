#include "troika/engine/stored_plan.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "troika/base/cache_file.h"
#include "troika/base/json_text.h"
#include "troika/profile/record/json_visitors.h"
#include "troika/profile/record/profile_store.h"

namespace troika::engine {
namespace {

using nlohmann::json;

constexpr JsonBounds kBounds{14, 400'000, 60};
constexpr size_t kMaxFiles = 50;
constexpr double kMaxUs = 1e10;
constexpr size_t kMaxText = 400;  // as the reader allows

const auto pass_fields = [](auto& v, PlannedPass& p) {
  v.integer("rows", p.rows, 1, plan::kMaxPlanRows);
  v.integer("depth_tokens", p.depth, 0, plan::kMaxPlanRows);
  v.text("name", p.name);
  v.text("reason", p.reason);
  v.number("predicted_us", p.predicted_us, 0, kMaxUs);
  v.text("best_single", p.best_single);
  v.number("best_single_us", p.best_single_us, 0, kMaxUs);
  v.number("measured_us", p.measured_us, 0, kMaxUs);
};

template <class Visitor>
void visit(Visitor& v, StoredPlan& p) {
  int64_t version = kStoredPlanVersion;
  v.integer("version", version, kStoredPlanVersion, kStoredPlanVersion);
  v.integer("time", p.time, 0, int64_t{1} << 40);
  v.text("strategy", p.strategy);
  v.boolean("confirmed", p.confirmed);
  v.list("passes", p.passes, plan::kMaxPlanBuckets, pass_fields);
}

// Printable ASCII, as it is read back.
std::string plain(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.substr(0, kMaxText);
}

Result<json> parse(std::string_view text) {
  if (text.size() > kMaxStoredPlanBytes) {
    return make_error(ErrorCode::kInvalidData, "stored plan: {} bytes, more than {}", text.size(),
                      kMaxStoredPlanBytes);
  }
  RETURN_IF_ERROR(check_json_size(text, "stored plan", kBounds));
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) {
    return make_error(ErrorCode::kInvalidData, "stored plan: not valid JSON, or cut off");
  }
  if (!root.is_object()) {
    return make_error(ErrorCode::kInvalidData, "stored plan: {} is not an object", shown(root));
  }
  const auto version = root.find("version");
  if (version != root.end() && version->is_number_integer() && *version != kStoredPlanVersion) {
    return make_error(ErrorCode::kUnsupported, "stored plan: version is {}, this program reads {}",
                      shown(*version), kStoredPlanVersion);
  }
  return root;
}

// Takes a part out, which has a reader of its own.
Result<std::string> take(json& root, const char* key) {
  const auto found = root.find(key);
  if (found == root.end()) {
    return make_error(ErrorCode::kInvalidData, "stored plan: {} is missing", key);
  }
  std::string text = found->dump(-1, ' ', true, json::error_handler_t::replace);
  root.erase(found);
  return text;
}

std::string key(const profile::Profile& profile, std::string_view activations) {
  return fmt::format("{}, activations {}", key_of(profile), activations);
}

}  // namespace

Result<StoredPlan> stored_plan_from_json(std::string_view text) {
  ASSIGN_OR_RETURN(json root, parse(text));
  ASSIGN_OR_RETURN(const std::string profile_text, take(root, "profile"));
  ASSIGN_OR_RETURN(const std::string plan_text, take(root, "plan"));
  StoredPlan stored;
  profile::JsonReader reader(root, "stored plan");
  visit(reader, stored);
  RETURN_IF_ERROR(reader.finish());
  ASSIGN_OR_RETURN(stored.of, profile::from_json(profile_text));
  ASSIGN_OR_RETURN(stored.plan, plan::from_json(plan_text));
  if (stored.passes.size() == stored.plan.buckets.size()) return stored;
  return make_error(ErrorCode::kInvalidData,
                    "stored plan: stored plan.passes has {} entries for {} buckets",
                    stored.passes.size(), stored.plan.buckets.size());
}

std::string to_json(const StoredPlan& plan) {
  StoredPlan copy = plan;  // one list of fields serves reading too, which changes them
  copy.strategy = plain(copy.strategy);
  for (PlannedPass& pass : copy.passes) {
    pass.name = plain(pass.name);
    pass.reason = plain(pass.reason);
    pass.best_single = plain(pass.best_single);
  }
  profile::JsonWriter writer;
  visit(writer, copy);
  profile::JsonWriter::Json root = writer.json();
  root["profile"] =
      profile::JsonWriter::Json::parse(profile::to_json(profile::without_points(copy.of)));
  root["plan"] = profile::JsonWriter::Json::parse(plan::to_json(copy.plan));
  return root.dump(1, ' ', true, json::error_handler_t::replace);
}

std::string stored_plan_schema() {
  profile::JsonSchema fields;
  StoredPlan empty;
  visit(fields, empty);
  profile::JsonSchema::Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Stored plan of a machine's devices";
  schema["description"] = "What troika plan --device keeps; see docs/planning.md";
  const profile::JsonSchema::Json object = fields.json();
  for (const auto& [key, value] : object.items()) schema[key] = value;
  schema["properties"]["version"] = {{"const", kStoredPlanVersion}};
  for (const char* const part : {"profile", "plan"}) schema["required"].push_back(part);
  schema["properties"]["profile"] = {{"description", "Machine, model and devices; without points"},
                                     {"$ref", "profile_schema.json"}};
  schema["properties"]["plan"] = {{"$ref", "plan.schema.json"}};
  return schema.dump(1);
}

std::string PlanStore::path(const profile::Profile& profile, std::string_view activations) const {
  if (folder_.empty()) return "";
  return fmt::format("{}/{}", folder_, cache_file_name(key(profile, activations)));
}

Result<StoredPlan> PlanStore::find(const profile::Profile& wanted,
                                   std::string_view activations) const {
  const std::string file = path(wanted, activations);
  if (file.empty()) return make_error(ErrorCode::kNotFound, "no plan is kept");
  const auto text = read_cache_file(file, kMaxStoredPlanBytes);
  if (!text) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      return make_error(ErrorCode::kInvalidData, "the stored plan {} cannot be read", file);
    }
    return make_error(ErrorCode::kNotFound, "no plan is kept for this model on these devices");
  }
  auto kept = stored_plan_from_json(*text);
  if (!kept) {
    return make_error(ErrorCode::kInvalidData, "the stored plan is damaged: {}",
                      kept.error().message);
  }
  RETURN_IF_ERROR(check_holds(kept->of, wanted, "the stored plan"));
  if (kept->plan.activations == activations) return kept;
  return make_error(ErrorCode::kInvalidData,
                    "the stored plan is damaged: plan.activations is {}, not {}",
                    kept->plan.activations, activations);
}

Status PlanStore::save(const StoredPlan& plan) const {
  if (folder_.empty()) return {};
  RETURN_IF_ERROR(write_cache_file(folder_, cache_file_name(key(plan.of, plan.plan.activations)),
                                   to_json(plan) + "\n"));
  keep_newest(folder_, kMaxFiles, kMaxFiles * kMaxStoredPlanBytes);
  return {};
}

}  // namespace troika::engine
