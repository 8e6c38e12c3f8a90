#include "troika/base/resident.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace troika {
namespace {

// The state of this many pages is asked for at once.
constexpr uintptr_t kPagesAtOnce = 4096;

#ifdef __linux__
using PageState = unsigned char;
#else
using PageState = char;
#endif

}  // namespace

int64_t resident_bytes(const std::byte* data, int64_t bytes) {
  if (data == nullptr || bytes <= 0) return 0;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = first + static_cast<uintptr_t>(bytes);
  std::array<PageState, kPagesAtOnce> states{};
  int64_t resident = 0;
  for (uintptr_t at = first / page * page; at < end;) {
    const uintptr_t pages = std::min(kPagesAtOnce, (end - at + page - 1) / page);
    // The system wants a pointer that it does not write through.
    if (mincore(reinterpret_cast<void*>(at), pages * page, states.data()) != 0) return -1;
    for (uintptr_t i = 0; i < pages; ++i, at += page) {
      if ((static_cast<unsigned>(states[i]) & 1u) == 0) continue;
      resident += static_cast<int64_t>(std::min(at + page, end) - std::max(at, first));
    }
  }
  return resident;
}

}  // namespace troika
