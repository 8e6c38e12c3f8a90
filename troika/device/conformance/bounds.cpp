#include "troika/device/conformance/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troika::device::conformance {
namespace {

using graph::OpKind;

// Exact devices. One FP32 rounding is an NMSE of at most 2^-48 = 3.6e-15. None of the bounds below
// leaves room for FP16 (1e-8 and more for a single rounding), BF16, TF32 or 8-bit activations.
//
// A copy rounds nothing; a block's weight d * q + m is one or two roundings.
constexpr double kExactCopy = 1e-13;
// A few roundings one after another; a table of angles in double, for in FP32 those of the
// thousandth token would already be wrong in the fifth digit.
constexpr double kExactElement = 1e-12;
// A sum of n terms in any order has a relative error of about 2^-24 sqrt(n): for the 1536 terms of
// the longest sum here 5e-12. SiLU and softmax take an exponential good to 1e-6.
constexpr double kExactSum = 1e-11;

// Devices of FP16 inputs. One rounding is an NMSE of about 2^-24 = 6e-8 for values spread evenly,
// and up to 2^-22 = 2.4e-7 for a row that one outlier rules. BF16, eight times coarser, is beyond
// all of these.
//
// One rounding at the way in, one at the way out. A table of angles has the latter only.
constexpr double kHalfCopy = 5e-7;
// Up to four roundings of a value that rules its row, all to one side: both factors, what lies
// between two steps, and the result.
constexpr double kHalfElement = 4e-6;
// Factors are rounded, sums are in FP32: in FP16 a sum of 500 terms would be off by 1e-5.
constexpr double kHalfSum = 1e-6;
// Scores enter an exponential: an error of 2^-11 of a score of 8 is one of 0.4 % of a weight.
constexpr double kHalfAttention = 2e-5;

// Inputs in 8 bits with a scale for 32 of them: off by up to 1/254 of the largest, whose square is
// at most 32 times the mean one. 32 / 254^2 / 3 is 1.7e-4 for values that are all ruled by one.
constexpr double kInt8Sum = 2e-4;

// Rows shorter than this may come out small by chance, and any error then looks large.
constexpr int64_t kLeastWidth = 32;
// A row's power is taken to be at least this part of the mean row's.
constexpr double kLeastPower = 1e-3;

}  // namespace

double op_bound(OpKind kind, bool exact) {
  switch (kind) {
    case OpKind::kEmbed:
    case OpKind::kConcat:
    case OpKind::kGatherRows:
    case OpKind::kKvWrite:
      return exact ? kExactCopy : kHalfCopy;
    case OpKind::kRopeTable:
      return exact ? kExactElement : kHalfCopy;
    case OpKind::kRope:
    case OpKind::kAdd:
      return exact ? kExactElement : kHalfElement;
    case OpKind::kRmsNorm:
    case OpKind::kSiluMul:
      return exact ? kExactSum : kHalfElement;
    case OpKind::kMatMul:
      return exact ? kExactSum : kHalfSum;
    case OpKind::kAttention:
      return exact ? kExactSum : kHalfAttention;
  }
  return 0;
}

double program_bound(const Program& program, const DeviceInfo& device) {
  double bound = 0;
  for (const graph::OpId op : program.ops) {
    const OpKind kind = program.graph->op(op).kind;
    bound += op_bound(kind, device.exact);
    if (device.int8_inputs && kind == OpKind::kMatMul) bound += kInt8Sum;
  }
  return bound;
}

double nmse(std::span<const float> got, std::span<const double> expected, int64_t width) {
  const auto rows = static_cast<int64_t>(got.size()) / std::max<int64_t>(width, 1);
  std::vector<double> errors(static_cast<size_t>(rows));
  std::vector<double> powers(static_cast<size_t>(rows));
  double error = 0;
  double power = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double& row_error = errors[static_cast<size_t>(r)];
    double& row_power = powers[static_cast<size_t>(r)];
    for (int64_t i = r * width; i < (r + 1) * width; ++i) {
      const double truth = expected[static_cast<size_t>(i)];
      const double off = static_cast<double>(got[static_cast<size_t>(i)]) - truth;
      row_error += off * off;
      row_power += truth * truth;
    }
    error += row_error;
    power += row_power;
  }
  if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
  double worst = power > 0 ? error / power : error;
  if (width < kLeastWidth || power == 0) return worst;
  const double least = kLeastPower * power / static_cast<double>(rows);
  for (size_t r = 0; r < errors.size(); ++r) {
    worst = std::max(worst, errors[r] / std::max(powers[r], least));
  }
  return worst;
}

}  // namespace troika::device::conformance
