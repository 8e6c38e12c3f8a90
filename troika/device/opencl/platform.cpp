#include "troika/device/opencl/platform.h"

#include <algorithm>
#include <cctype>

namespace troika::device::opencl {
namespace {

// Longest text that a runtime is believed to say of itself.
constexpr size_t kLongestText = size_t{1} << 16;

constexpr const char* kInstall =
    "each driver is named by an .icd file in /etc/OpenCL/vendors, or in the folder that "
    "OCL_ICD_VENDORS names; for the processor install pocl-opencl-icd";

// Of OpenCL 2.0; earlier devices do not know the question.
constexpr cl_device_info kSvmCapabilities = 0x1053;
constexpr cl_ulong kFineGrainBuffer = 1 << 1;

template <class Call>
std::string text_of(const Call& call) {
  size_t size = 0;
  if (call(0, nullptr, &size) != CL_SUCCESS || size == 0 || size > kLongestText) return {};
  std::string text(size, '\0');
  if (call(size, text.data(), nullptr) != CL_SUCCESS) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  return text_of([&](size_t size, char* data, size_t* needed) {
    return api().GetDeviceInfo(device, what, size, data, needed);
  });
}

template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  api().GetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

DeviceFacts describe(cl_platform_id platform, cl_device_id device) {
  DeviceFacts facts;
  facts.platform = platform;
  facts.device = device;
  facts.platform_name = text_of([&](size_t size, char* data, size_t* needed) {
    return api().GetPlatformInfo(platform, CL_PLATFORM_NAME, size, data, needed);
  });
  facts.name = device_text(device, CL_DEVICE_NAME);
  facts.vendor = device_text(device, CL_DEVICE_VENDOR);
  facts.driver = device_text(device, CL_DRIVER_VERSION);
  facts.version = device_text(device, CL_DEVICE_VERSION);
  facts.extensions = device_text(device, CL_DEVICE_EXTENSIONS);
  facts.type = device_value<cl_device_type>(device, CL_DEVICE_TYPE);
  facts.unified_memory = device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
  facts.coherent = (device_value<cl_ulong>(device, kSvmCapabilities) & kFineGrainBuffer) != 0;
  facts.memory_bytes =
      static_cast<int64_t>(device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.largest_buffer =
      static_cast<int64_t>(device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  facts.local_bytes =
      static_cast<int64_t>(device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  facts.work_group =
      static_cast<int64_t>(device_value<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  facts.units = static_cast<int64_t>(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  // cl_nv_device_attribute_query; from compute capability 8.0 on.
  constexpr cl_device_info kComputeCapabilityMajor = 0x4000;
  facts.matrix_units = facts.has("cl_nv_device_attribute_query") &&
                       device_value<cl_uint>(device, kComputeCapabilityMajor) >= 8;
  return facts;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// What users call a platform by, besides words of its name.
bool is_called(const DeviceFacts& facts, const std::string& word) {
  if (word == "pocl") return facts.platform_name == "Portable Computing Language";
  const std::string all = fmt::format("{} {} {}", facts.platform_name, facts.name, facts.vendor);
  // PoCL names the processor's vendor, too.
  return facts.platform_name != "Portable Computing Language" &&
         lower_case(all).find(lower_case(word)) != std::string::npos;
}

std::string names(const std::vector<DeviceFacts>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    text += fmt::format("{}opencl:{} is {} ({})", i == 0 ? "" : ", ", i, devices[i].name,
                        devices[i].platform_name);
  }
  return text;
}

}  // namespace

bool DeviceFacts::has(std::string_view extension) const {
  const std::string padded = fmt::format(" {} ", extensions);
  return padded.find(fmt::format(" {} ", extension)) != std::string::npos;
}

Result<std::vector<DeviceFacts>> find_devices() {
  ASSIGN_OR_RETURN(const Api* const cl, load_api());
  constexpr cl_uint kMost = 64;
  cl_uint count = 0;
  std::vector<cl_platform_id> platforms(kMost);
  const cl_int code = cl->GetPlatformIDs(kMost, platforms.data(), &count);
  if (code != CL_SUCCESS || count == 0) {
    return make_error(ErrorCode::kNotFound, "the OpenCL loader finds no driver: {}", kInstall);
  }
  platforms.resize(std::min(count, kMost));
  std::vector<DeviceFacts> found;
  for (const cl_platform_id platform : platforms) {
    std::vector<cl_device_id> devices(kMost);
    count = 0;
    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMost, devices.data(), &count) !=
        CL_SUCCESS) {
      continue;
    }
    for (cl_uint i = 0; i < std::min(count, kMost); ++i) {
      found.push_back(describe(platform, devices[i]));
    }
  }
  if (found.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "{} OpenCL driver{} without a device: is the GPU there and the user allowed "
                      "to use it? {}",
                      platforms.size(), platforms.size() == 1 ? "" : "s", kInstall);
  }
  return found;
}

Result<DeviceFacts> choose_device(const std::string& instance) {
  ASSIGN_OR_RETURN(const auto devices, find_devices());
  if (instance.empty()) {
    const auto gpu = std::find_if(devices.begin(), devices.end(),
                                  [](const DeviceFacts& d) { return !d.is_processor(); });
    return gpu == devices.end() ? devices.front() : *gpu;
  }
  const bool number = std::all_of(instance.begin(), instance.end(),
                                  [](unsigned char c) { return std::isdigit(c) != 0; });
  if (number && instance.size() < 4) {
    const auto index = static_cast<size_t>(std::stoul(instance));
    if (index < devices.size()) return devices[index];
  } else {
    for (const DeviceFacts& device : devices) {
      if (is_called(device, instance)) return device;
    }
  }
  return make_error(ErrorCode::kNotFound, "no OpenCL device \"{}\" here: {}", instance,
                    names(devices));
}

}  // namespace troika::device::opencl
