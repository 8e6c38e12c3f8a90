// The kernels that work row by row on floats: normalization, rotation, activation, addition.

namespace troika::device::cpu {
namespace {

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  // Four vectors of partial sums: short chains, and a small rounding error.
  VF acc[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const VF v = load(x + i + j * kLanes);
      acc[j] = fma(v, v, acc[j]);
    }
  }
  for (int j = 0; i < n; i += kLanes, ++j) {
    const VF v = load_first(x + i, n - i < kLanes ? static_cast<int>(n - i) : kLanes);
    acc[j] = fma(v, v, acc[j]);
  }
  const float squares = sum(add(add(acc[0], acc[1]), add(acc[2], acc[3])));
  const float scale = 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps);
  const VF scales = splat(scale);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    store(y + i, mul(mul(load(x + i), scales), load(weight + i)));
  }
  for (; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void rope(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, RopePairs pairs,
          const float* cos_sin) {
  const int64_t half = rope_dim / 2;
  const int64_t distance = pairs == RopePairs::kAdjacent ? 1 : half;
  const int64_t step = pairs == RopePairs::kAdjacent ? 2 : 1;
  for (int64_t h = 0; h < n_heads; ++h, x += head_dim) {
    for (int64_t i = 0; i < half; ++i) {
      float* const p = x + i * step;
      const float c = cos_sin[2 * i];
      const float s = cos_sin[2 * i + 1];
      const float a = p[0];
      const float b = p[distance];
      p[0] = a * c - b * s;
      p[distance] = a * s + b * c;
    }
  }
}

KERNEL_INLINE VF silu(VF z) { return div(z, add(splat(1), exp(sub(zero(), z)))); }

void silu_mul(const float* gate, const float* up, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, mul(silu(load(gate + i)), load(up + i)));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    store_first(y + i, mul(silu(load_first(gate + i, rest)), load_first(up + i, rest)), rest);
  }
}

void add_rows(const float* a, const float* b, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, add(load(a + i), load(b + i)));
  for (; i < n; ++i) y[i] = a[i] + b[i];
}

// Independent multiply-adds and nothing else: what the machine could do at best.
double fma_burst(int64_t rounds, float* sink) {
  constexpr int kChains = kRegisters - 4;
  VF acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = splat(sink[0] + static_cast<float>(i));
  const VF a = splat(sink[1]);
  const VF b = splat(sink[2]);
  for (int64_t k = 0; k < rounds; ++k) {
    for (int i = 0; i < kChains; ++i) acc[i] = fma(acc[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = add(acc[0], acc[i]);
  sink[0] = sum(acc[0]);
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

}  // namespace
}  // namespace troika::device::cpu
