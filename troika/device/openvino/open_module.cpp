#include <dlfcn.h>

#include <filesystem>

#include "troika/device/openvino/module_interface.h"
#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {
namespace {

constexpr const char* kInstall =
    "run scripts/bootstrap, which installs OpenVINO, then scripts/build";

Result<std::string> module_path(const OpenVinoOptions& options) {
  if (!options.module_path.empty()) return options.module_path;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) {
    return make_error(ErrorCode::kNotFound,
                      "device {}: the program's own folder, where {} should be, is not known: {}",
                      options.name, kModuleFile, failed.message());
  }
  return (program.parent_path() / kModuleFile).string();
}

struct Module {
  StampFunction stamp = nullptr;
  OpenFunction open = nullptr;
};

// Never unloaded: OpenVINO's threads outlive what they are used for.
Result<Module> load(const OpenVinoOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, module_path(options));
  if (!std::filesystem::exists(path)) {
    return make_error(ErrorCode::kNotFound,
                      "device {}: no file {}: this program was built without OpenVINO; {}",
                      options.name, path, kInstall);
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return make_error(ErrorCode::kNotFound, "device {}: {} cannot be loaded: {}; {}", options.name,
                      path, reason == nullptr ? "no reason given" : reason, kInstall);
  }
  Module module;
  module.stamp = reinterpret_cast<StampFunction>(dlsym(library, kStampSymbol));
  module.open = reinterpret_cast<OpenFunction>(dlsym(library, kOpenSymbol));
  std::string stamp;
  if (module.stamp != nullptr) module.stamp(&stamp);
  if (module.open == nullptr || stamp != interface_stamp()) {
    return make_error(ErrorCode::kUnsupported,
                      "device {}: {} belongs to another build of Troika; build again", options.name,
                      path);
  }
  return module;
}

}  // namespace

Result<std::unique_ptr<Device>> open(const OpenVinoOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(const Module module, load(options));
  Opened opened;
  module.open(&options, &clock, &opened);
  if (opened.device == nullptr) return tl::unexpected<Error>(std::move(opened.error));
  return std::move(opened.device);
}

}  // namespace troika::device::openvino
