#include "troika/device/cpu/read_ahead.h"

#include <algorithm>

namespace troika::device::cpu {
namespace {

constexpr int64_t kCacheLine = 64;
// What comes from memory in about a microsecond.
constexpr int64_t kPieceBytes = 8192;
// Half of a small second-level cache.
constexpr int64_t kMostPieces = 256 * 1024 / kPieceBytes;

}  // namespace

ReadAhead::ReadAhead(const std::vector<Step>& steps, const Program& program)
    : after_(steps.size(), nullptr) {
  const std::byte* next = nullptr;
  for (size_t i = steps.size(); i-- > 0;) {
    after_[i] = next;
    if (steps[i].ops.front().weights != nullptr) next = steps[i].ops.front().weights;
  }
  for (const Step& step : steps) {
    for (const BoundOp& bound : step.ops) {
      if (bound.op->kind != graph::OpKind::kMatMul) continue;
      const graph::WeightSlice slice = graph::weight_slice(*program.graph, *bound.op);
      // Rows that lie apart are left to the product.
      if (bound.weights_stride != model::row_bytes(slice.weight->type, slice.k)) return;
      const int64_t bytes = slice.n * bound.weights_stride;
      for (int64_t at = 0; at < bytes; at += kPieceBytes) {
        if (std::ssize(pieces_) == kMostPieces) return;
        pieces_.emplace_back(bound.weights + at,
                             static_cast<size_t>(std::min(kPieceBytes, bytes - at)));
      }
    }
  }
}

bool ReadAhead::fetch(int64_t pieces) const {
  if (pieces >= std::ssize(pieces_)) return false;
  const std::span<const std::byte> piece = pieces_[static_cast<size_t>(pieces)];
  for (size_t at = 0; at < piece.size(); at += kCacheLine) {
    __builtin_prefetch(piece.data() + at, 0, 2);  // for reading, into the second-level cache
  }
  return true;
}

}  // namespace troika::device::cpu
