#include "bench/launch_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "bench/need.h"
#include "troika/base/clock.h"
#include "troika/device/opencl/api.h"

namespace troika::bench {
namespace {

using namespace troika::device::opencl;

struct Launch {
  std::string name;
  cl_event event = nullptr;
};

Api real;
bool recording = false;
int64_t counted = 0;
std::vector<Launch> recorded;

TimePoint last_one{};
double in_driver = 0;

struct Timer {
  TimePoint begin;
  ~Timer() {
    last_one = system_clock().now();
    in_driver += to_seconds(last_one - begin);
  }
};

void forget() {
  for (const Launch& launch : recorded) real.ReleaseEvent(launch.event);
  recorded.clear();
  counted = 0;
  in_driver = 0;
}

std::string name_of(cl_kernel kernel, const size_t* global, const size_t* local) {
  std::array<char, 64> name{};
  real.GetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, name.size() - 1, name.data(), nullptr);
  const size_t group = local == nullptr ? 1 : local[0];
  return fmt::format("{} {} x {}", name.data(), global[0] / group * global[1], group);
}

cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                           const size_t* offset, const size_t* global, const size_t* local,
                           cl_uint waits, const cl_event* wait_list, cl_event* event) {
  ++counted;
  const Timer timer{system_clock().now()};
  if (!recording || event != nullptr) {
    return real.EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                     wait_list, event);
  }
  Launch launch{name_of(kernel, global, local)};
  const cl_int code = real.EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                waits, wait_list, &launch.event);
  if (code == CL_SUCCESS) recorded.push_back(std::move(launch));
  return code;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const Timer timer{system_clock().now()};
  return real.SetKernelArg(kernel, index, size, value);
}

cl_int CL_API_CALL flush(cl_command_queue queue) {
  const Timer timer{system_clock().now()};
  return real.Flush(queue);
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* code) {
  return real.CreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, code);
}

struct Span {
  double start = 0;
  double end = 0;
};

Span span_of(const Launch& launch) {
  cl_ulong start = 0;
  cl_ulong end = 0;
  real.GetEventProfilingInfo(launch.event, CL_PROFILING_COMMAND_START, sizeof start, &start,
                             nullptr);
  real.GetEventProfilingInfo(launch.event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
  return {static_cast<double>(start) * 1e-3, static_cast<double>(end) * 1e-3};
}

}  // namespace

LaunchTimes::LaunchTimes() {
  real = *need(load_api());
  Api mine = real;
  mine.EnqueueNDRangeKernel = enqueue;
  mine.CreateCommandQueue = create_queue;
  mine.SetKernelArg = set_argument;
  mine.Flush = flush;
  replace_api(mine);
}

LaunchTimes::~LaunchTimes() {
  forget();
  replace_api(real);
}

void LaunchTimes::start() {
  forget();
  recording = true;
}

void LaunchTimes::stop() { recording = false; }

int64_t LaunchTimes::launches() const { return counted; }

double LaunchTimes::last_queued() const { return to_seconds(last_one); }

double LaunchTimes::driver_seconds() const { return in_driver; }

std::vector<LaunchTimes::Kind> LaunchTimes::kinds() const {
  std::map<std::string, Kind> by_name;
  double before = 0;
  for (const Launch& launch : recorded) {
    const Span span = span_of(launch);
    Kind& kind = by_name[launch.name];
    kind.name = launch.name;
    ++kind.count;
    kind.us += span.end - span.start;
    if (before > 0) kind.gap += span.start - before;
    before = span.end;
  }
  std::vector<Kind> all;
  for (auto& [name, kind] : by_name) all.push_back(kind);
  std::sort(all.begin(), all.end(), [](const Kind& a, const Kind& b) { return a.us > b.us; });
  return all;
}

double LaunchTimes::span() const {
  return recorded.empty() ? 0 : span_of(recorded.back()).end - span_of(recorded.front()).start;
}

double LaunchTimes::longest_gap() const {
  double longest = 0;
  double before = 0;
  for (const Launch& launch : recorded) {
    const Span span = span_of(launch);
    if (before > 0) longest = std::max(longest, span.start - before);
    before = span.end;
  }
  return longest;
}

}  // namespace troika::bench
