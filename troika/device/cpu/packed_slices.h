// Slices of weights that lie together in memory of the device's own.
//
// Of a product of a part of the inputs, the rows that are read lie apart: what hardware fetches
// ahead is then mostly what the other devices read. With few rows, when reading weights is all the
// time there is, that costs as much as the part that was left out saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "troika/base/held_values.h"
#include "troika/device/cpu/step.h"

namespace troika::device::cpu {

// Not synchronized.
class PackedSlices {
 public:
  // Has the products of these steps read copies of their slices, where that pays. Kernels share
  // them; a copy goes with the last kernel that reads it. std::bad_alloc if memory is short.
  void pack(std::vector<Step>& steps, const Program& program);
  int64_t bytes() const;

 private:
  HeldValues<graph::WeightSlice, const std::vector<std::byte>> held_;
};

}  // namespace troika::device::cpu
