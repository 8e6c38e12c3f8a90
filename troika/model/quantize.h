// Scalar conversion between stored weights and float: the definition of each format, used as the
// truth by tests, by `synth`, and by kernels without a faster path.
//
// Block layouts (little-endian; q packs weight i in the low and i+16 in the high nibble of byte i):
//   Q4_0  18 bytes / 32 weights: f16 d, 16 B q       w = d * (q - 8)
//   Q4_1  20 bytes / 32 weights: f16 d, f16 m, 16 B q  w = d * q + m
//   Q8_0  34 bytes / 32 weights: f16 d, 32 int8 q    w = d * q
//   Q4_K, Q6_K: k_quants.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "troika/model/tensor_type.h"

namespace troika::model {

float f16_to_f32(uint16_t bits);
float f16_at(const std::byte* stored);
uint16_t f32_to_f16(float value);  // round to nearest even
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);  // round to nearest even

// One row: `out.size()` weights (a multiple of the block) from `row`.
void dequantize_row(TensorType type, const std::byte* row, std::span<float> out);
void quantize_row(TensorType type, std::span<const float> values, std::byte* row);

// True if every scale and plain float of the row is finite.
bool row_is_finite(TensorType type, const std::byte* row, int64_t cols);

}  // namespace troika::model
