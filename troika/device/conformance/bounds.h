// How far from the reference a device's results may lie, and why.
//
// NMSE is the sum of squared errors over the sum of squares: of a whole tensor, and of each of its
// rows that is long enough for its own sum of squares to mean something; the largest counts.
#pragma once

#include <cstdint>
#include <span>

#include "troika/device/device.h"

namespace troika::device::conformance {

// The bound of one operator, on a device that computes in FP32 (`exact`) or rounds its inputs to
// FP16.
double op_bound(graph::OpKind kind, bool exact);

// The bound of what comes out of a program: the sum of its operators', for errors of one step are
// carried through the next at about their size. Inputs of 8 bits widen it for each product.
double program_bound(const Program& program, const DeviceInfo& device);

// Infinite if anything is NaN or infinite. `got` and `expected` are rows of `width` values.
double nmse(std::span<const float> got, std::span<const double> expected, int64_t width);

}  // namespace troika::device::conformance
