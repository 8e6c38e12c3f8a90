// exp for the instruction sets that have no better one, by range reduction and a polynomial.

namespace troika::device::cpu {
namespace {

// e^v within 1.5 units in the last place. v < -87 gives 0 (no subnormals), v > 88.73 infinity, NaN
// NaN, 0 exactly 1.
//
// v = n ln 2 + r with |r| <= 0.347, n ln 2 subtracted in two parts (the first has 9 bits, so that
// its product with n is exact); e^r is its Taylor polynomial, whose first missing term r^8 / 8! is
// below 2^-27. 2^n is applied as 2 * 2^(n - 1), since 2^128 is no float.
KERNEL_INLINE VF exp(VF v) {
  const VF low = splat(-87.0f);
  const VF x = min(splat(89.5f), max(low, v));
  const VF n = round_nearest(mul(x, splat(0x1.715476p+0f)));
  VF r = fma(n, splat(-0x1.63p-1f), x);
  r = fma(n, splat(0x1.bd0106p-13f), r);
  VF p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  p = mul(add(p, p), pow2(sub(n, splat(1))));
  return zero_if_less(v, low, p);
}

}  // namespace
}  // namespace troika::device::cpu
