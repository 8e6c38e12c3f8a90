#include "troika/plan/prediction.h"

#include <nlohmann/json.hpp>

#include "troika/plan/json_fields.h"
#include "troika/plan/plan.h"

namespace troika::plan {
namespace {

using nlohmann::json;

// More than any pass takes, draws or reads.
constexpr double kMostNumber = 1e15;
constexpr int64_t kMostBytes = int64_t{1} << 50;

Result<double> amount(const json& object, const std::string& path, const char* key) {
  ASSIGN_OR_RETURN(const double value, number_field(object, path, key));
  if (value >= 0 && value <= kMostNumber) return value;
  return make_error(ErrorCode::kInvalidData, "plan: {}.{} is {}, not 0 to {:g}", path, key, value,
                    kMostNumber);
}

// 0 if it is not there.
Result<double> optional_amount(const json& object, const std::string& path, const char* key) {
  if (!object.contains(key)) return 0;
  return amount(object, path, key);
}

Result<std::string> text(const json& object, const std::string& path, const char* key) {
  ASSIGN_OR_RETURN(std::string value, string_field(object, path, key));
  if (value.size() <= kMaxRejectedText) return value;
  return make_error(ErrorCode::kInvalidData, "plan: {}.{} has {} bytes, {} at most", path, key,
                    value.size(), kMaxRejectedText);
}

Result<DevicePrediction> device_from(const json& object, const std::string& path) {
  DevicePrediction device;
  RETURN_IF_ERROR(no_other_fields(object, path, {"device", "busy_us", "weight_bytes", "mj"}));
  ASSIGN_OR_RETURN(const json* name, field(object, path, "device"));
  ASSIGN_OR_RETURN(device.device, name_from(*name, path + ".device"));
  ASSIGN_OR_RETURN(device.busy_us, amount(object, path, "busy_us"));
  ASSIGN_OR_RETURN(device.weight_bytes, int_field(object, path, "weight_bytes", 0, kMostBytes));
  ASSIGN_OR_RETURN(device.mj, optional_amount(object, path, "mj"));
  return device;
}

Result<Rejected> rejected_from(const json& object, const std::string& path) {
  Rejected one;
  RETURN_IF_ERROR(no_other_fields(object, path, {"name", "why", "us", "mj"}));
  ASSIGN_OR_RETURN(one.name, text(object, path, "name"));
  ASSIGN_OR_RETURN(one.why, text(object, path, "why"));
  ASSIGN_OR_RETURN(one.us, optional_amount(object, path, "us"));
  ASSIGN_OR_RETURN(one.mj, optional_amount(object, path, "mj"));
  return one;
}

Result<const json*> list(const json& object, const std::string& path, const char* key,
                         size_t most) {
  ASSIGN_OR_RETURN(const json* all, array_field(object, path, key));
  if (all->size() <= most) return all;
  return make_error(ErrorCode::kInvalidData, "plan: {}.{} has {} entries, {} at most", path, key,
                    all->size(), most);
}

}  // namespace

json to_json(const Prediction& prediction) {
  json devices = json::array();
  for (const DevicePrediction& one : prediction.devices) {
    devices.push_back(
        {{"device", one.device}, {"busy_us", one.busy_us}, {"weight_bytes", one.weight_bytes}});
    if (one.mj > 0) devices.back()["mj"] = one.mj;
  }
  json rejected = json::array();
  for (const Rejected& one : prediction.rejected) {
    rejected.push_back({{"name", one.name}, {"why", one.why}});
    if (one.us > 0) rejected.back()["us"] = one.us;
    if (one.mj > 0) rejected.back()["mj"] = one.mj;
  }
  json object = {{"us", prediction.us},
                 {"p90_us", prediction.p90_us},
                 {"reason", prediction.reason},
                 {"devices", std::move(devices)},
                 {"rejected", std::move(rejected)}};
  if (prediction.mj > 0) object["mj"] = prediction.mj;
  return object;
}

Result<Prediction> prediction_from(const json& object, const std::string& path) {
  Prediction prediction;
  RETURN_IF_ERROR(
      no_other_fields(object, path, {"us", "p90_us", "mj", "reason", "devices", "rejected"}));
  ASSIGN_OR_RETURN(prediction.us, amount(object, path, "us"));
  ASSIGN_OR_RETURN(prediction.p90_us, amount(object, path, "p90_us"));
  ASSIGN_OR_RETURN(prediction.mj, optional_amount(object, path, "mj"));
  ASSIGN_OR_RETURN(prediction.reason, text(object, path, "reason"));
  ASSIGN_OR_RETURN(const json* devices, list(object, path, "devices", kMaxPlanDevices));
  for (size_t i = 0; i < devices->size(); ++i) {
    ASSIGN_OR_RETURN(DevicePrediction device,
                     device_from((*devices)[i], fmt::format("{}.devices[{}]", path, i)));
    prediction.devices.push_back(std::move(device));
  }
  ASSIGN_OR_RETURN(const json* rejected, list(object, path, "rejected", kMaxRejected));
  for (size_t i = 0; i < rejected->size(); ++i) {
    ASSIGN_OR_RETURN(Rejected one,
                     rejected_from((*rejected)[i], fmt::format("{}.rejected[{}]", path, i)));
    prediction.rejected.push_back(std::move(one));
  }
  return prediction;
}

}  // namespace troika::plan
