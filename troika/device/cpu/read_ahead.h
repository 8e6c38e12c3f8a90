// What a kernel of few rows will read of weights, to be fetched before it is its turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "troika/device/cpu/step.h"

namespace troika::device::cpu {

class ReadAhead {
 public:
  ReadAhead() = default;  // nothing
  ReadAhead(const std::vector<Step>& steps, const Program& program);

  // The weights that are read first after a step; null: the kernel reads no more.
  const std::byte* after(size_t step) const { return after_.empty() ? nullptr : after_[step]; }

  // Asks for another piece of the first weights, as many cache lines as come in about a
  // microsecond, `pieces` having been asked for; false: those were all that a cache would keep.
  bool fetch(int64_t pieces) const;

 private:
  std::vector<const std::byte*> after_;             // for each step
  std::vector<std::span<const std::byte>> pieces_;  // in the order in which they are read
};

}  // namespace troika::device::cpu
