#include "troika/base/cores.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <thread>

namespace troika {

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) {  // more cores than cpu_set_t holds
    const int count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int core = 0; core < count; ++core) cores.push_back(core);
  }
  return cores;
}

Status pin_this_thread(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "cannot use core(s) {}: not there or not allowed", fmt::join(cores, ","));
  }
  return {};
}

}  // namespace troika
