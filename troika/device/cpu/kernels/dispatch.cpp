#include <array>

#include "troika/device/cpu/kernels/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troika::device::cpu {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the operating system saves the registers.
bool has_avx2() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

struct Available {
  std::array<const KernelTable*, 4> tables{};
  size_t count = 0;

  Available() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_avx512()) tables[count++] = &kAvx512Kernels;
    if (has_avx2()) tables[count++] = &kAvx2Kernels;
#elif defined(__aarch64__)
    tables[count++] = &kNeonKernels;
#endif
    tables[count++] = &kPortableKernels;
  }
};

}  // namespace

std::span<const KernelTable* const> available_kernels() {
  static const Available available;
  return {available.tables.data(), available.count};
}

const KernelTable* find_kernels(std::string_view name) {
  for (const KernelTable* table : available_kernels()) {
    if (table->name == name) return table;
  }
  return nullptr;
}

Result<const KernelTable*> choose_kernels(std::string_view name) {
  if (name.empty()) return available_kernels().front();
  if (const KernelTable* found = find_kernels(name)) return found;
  std::string names;
  for (const KernelTable* table : available_kernels()) {
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  return make_error(ErrorCode::kUnsupported, "no kernels \"{}\" on this machine: it has {}", name,
                    names);
}

}  // namespace troika::device::cpu
