// Opening: which OpenCL device, which class, what it says of itself.
#include <cstdlib>
#include <thread>

#include "troika/base/cores.h"
#include "troika/device/opencl/device.h"

namespace troika::device::opencl {
namespace {

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

// Runtimes on a processor ask the environment how many threads to make, once. What the user has set
// stays.
void limit_threads(size_t cores) {
  const std::string count = std::to_string(cores);
  for (const char* name : {"POCL_MAX_PTHREAD_COUNT", "DPCPP_CPU_NUM_CUS"}) {
    setenv(name, count.c_str(), 0);
  }
}

}  // namespace

Result<Session> open_session(const OpenClOptions& options) {
  Session session;
  ASSIGN_OR_RETURN(session.facts, choose_device(options.instance));
  const DeviceFacts& facts = session.facts;
  session.device_class =
      facts.is_processor() && !options.gpu_kernels ? DeviceClass::kHost : DeviceClass::kGpu;
  // Shared memory that both sides would have to be told about is treated as two memories.
  const bool shares = facts.is_processor() || (facts.unified_memory && facts.coherent);
  session.own_memory = options.own_memory || !shares;
  session.tile_weights = options.tile_weights;
  session.profiled = options.device_times;
  session.broken_kernel = options.broken_kernel;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int code = CL_SUCCESS;
  session.context =
      ContextHandle(api().CreateContext(properties, 1, &facts.device, nullptr, nullptr, &code));
  RETURN_IF_ERROR(check_call("clCreateContext", code));
  session.queue = QueueHandle(
      api().CreateCommandQueue(session.context.get(), facts.device,
                               session.profiled ? CL_QUEUE_PROFILING_ENABLE : 0, &code));
  RETURN_IF_ERROR(check_call("clCreateCommandQueue", code));
  return session;
}

DeviceInfo describe(const OpenClOptions& options, const Session& session) {
  const DeviceFacts& facts = session.facts;
  DeviceInfo info;
  info.name = options.name;
  info.kind = facts.is_processor() ? DeviceKind::kCpu : DeviceKind::kGpu;
  info.description = fmt::format("{}, {}", facts.name, facts.platform_name);
  info.cores = options.cores;
  info.threads = facts.is_processor()
                     ? std::max(1, static_cast<int>(options.cores.empty() ? facts.units
                                                                          : options.cores.size()))
                     : 0;
  info.version =
      fmt::format("{}, {}, driver {}, kernels 1", facts.platform_name, facts.version, facts.driver);
  info.unified_memory = !session.own_memory;
  info.capacity_bytes = session.own_memory ? facts.memory_bytes : 0;
  info.facts = {
      {"OpenCL", facts.version},
      {"driver", facts.driver},
      {"compute units", std::to_string(facts.units)},
      {"memory", megabytes(facts.memory_bytes) + (session.own_memory ? " of its own" : ", shared")},
      {"largest buffer", megabytes(facts.largest_buffer)},
      {"local memory", fmt::format("{} KB", facts.local_bytes / 1024)},
      {"FP16 arithmetic", facts.has("cl_khr_fp16") ? "yes, not used" : "no"},
      {"subgroups", facts.has("cl_khr_subgroups") ? "yes, not used" : "no"},
      {"matrix units",
       facts.matrix_units ? "of signed bytes, for products of up to 32 rows" : "no"},
      {"kernels", session.device_class == DeviceClass::kHost ? "for processors" : "for GPUs"},
  };
  return info;
}

Result<std::unique_ptr<Device>> open(const OpenClOptions& options, const Clock& clock) {
  Result<Session> session = make_error(ErrorCode::kInternal, "not opened");
  // A runtime's threads inherit the cores of the thread that makes it.
  std::thread opener([&] {
    if (!options.cores.empty()) {
      limit_threads(options.cores.size());
      static_cast<void>(pin_this_thread(options.cores));
    }
    session = open_session(options);
  });
  opener.join();
  if (!session) {
    return make_error(session.error().code, "device {}: {}", options.name, session.error().message);
  }
  DeviceInfo info = describe(options, *session);
  return std::make_unique<OpenClDevice>(std::move(info), std::move(*session), options.cache_dir,
                                        clock);
}

Result<std::vector<std::string>> list_devices() {
  ASSIGN_OR_RETURN(const auto devices, find_devices());
  std::vector<std::string> lines;
  for (size_t i = 0; i < devices.size(); ++i) {
    lines.push_back(fmt::format("opencl:{} {} ({})", i, devices[i].name, devices[i].platform_name));
  }
  return lines;
}

}  // namespace troika::device::opencl
