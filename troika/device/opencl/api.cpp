#include "troika/device/opencl/api.h"

#include <dlfcn.h>

namespace troika::device::opencl {
namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

struct Loaded {
  Api api;
  Status status;
};

// Never unloaded: runtimes keep threads.
Loaded load() {
  Loaded loaded;
  void* const library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    loaded.status = make_error(ErrorCode::kNotFound,
                               "no OpenCL loader ({}): install the package ocl-icd-libopencl1 and "
                               "an OpenCL driver, or pocl-opencl-icd for the processor",
                               reason == nullptr ? kLoader : reason);
    return loaded;
  }
#define TROIKA_OPENCL_FIND(name)                                                                 \
  loaded.api.name = reinterpret_cast<decltype(loaded.api.name)>(dlsym(library, "cl" #name));     \
  if (loaded.api.name == nullptr && loaded.status) {                                             \
    loaded.status = make_error(ErrorCode::kUnsupported,                                          \
                               "{} has no cl{}: OpenCL 1.2 or later is needed", kLoader, #name); \
  }
  TROIKA_OPENCL_FUNCTIONS(TROIKA_OPENCL_FIND)
#undef TROIKA_OPENCL_FIND
  return loaded;
}

Loaded& loaded_once() {
  static Loaded loaded = load();
  return loaded;
}

struct CodeName {
  cl_int code;
  const char* name;
};

constexpr CodeName kCodeNames[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

}  // namespace

Result<const Api*> load_api() {
  const Loaded& loaded = loaded_once();
  if (!loaded.status) return tl::unexpected<Error>(loaded.status.error());
  return &loaded.api;
}

const Api& api() { return loaded_once().api; }

void replace_api(const Api& replacement) { loaded_once().api = replacement; }

std::string error_name(cl_int code) {
  for (const CodeName& known : kCodeNames) {
    if (known.code == code) return fmt::format("{} ({})", known.name, code);
  }
  return fmt::format("OpenCL error {}", code);
}

Error call_error(std::string_view call, cl_int code) {
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                      code == CL_OUT_OF_RESOURCES || code == CL_INVALID_BUFFER_SIZE;
  return {memory ? ErrorCode::kOutOfMemory : ErrorCode::kDeviceFailed,
          fmt::format("{} failed: {}", call, error_name(code))};
}

Status check_call(std::string_view call, cl_int code) {
  if (code == CL_SUCCESS) return {};
  return tl::unexpected<Error>(call_error(call, code));
}

}  // namespace troika::device::opencl
