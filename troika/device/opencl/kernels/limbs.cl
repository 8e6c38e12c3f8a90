// Rows of inputs as fixed-point numbers of 24 bits for product_rows.cl: each row in three signed bytes
// ("limbs"), columns 3 * row, + 1, + 2 of the matrix that the weights are multiplied with, and one
// scale for the row, which has the norm before the product and the 16 of the weights' bytes in it.
//
// A column has k bytes, in the order in which matrix units take them: 128 inputs after the other; of
// those, weight 32 b + 8 q + 2 j + odd at 32 q + 8 b + 4 odd + j, as nibbles lie in their words.
//
// Local size: GROUP. Global size: ROWS * GROUP; of rows from m on all is zero.

#define GROUP 256
// The largest input of a row becomes this. A row whose largest is below LEAST counts as zero.
#define LARGEST 4194304.0f
#define LEAST 1e-30f
#define LIMBS 3

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void make_limbs(__global const float *x, ulong x_begin, uint x_stride,
                __global const float *gain, ulong gain_begin, float eps, int has_gain, uint k,
                uint m, __global float *scales, ulong scales_begin, ulong limbs_begin) {
  __local float squares[GROUP];
  __local uint largest[GROUP];
  gain += gain_begin;
  scales += scales_begin;
  const uint row = get_group_id(0);
  const uint lid = get_local_id(0);
  __global char *limbs = (__global char *)scales + limbs_begin + (ulong)row * LIMBS * k;
  const bool used = row < m;
  x += x_begin + (ulong)(used ? row : 0) * x_stride;
  float sum = 0.0f;
  uint most = 0;
  for (uint i = lid; i < k; i += GROUP) {
    const float value = used ? x[i] : 0.0f;
    sum += value * value;
    // As integers: a NaN is larger than all.
    most = max(most, as_uint(has_gain ? value * gain[i] : value) & 0x7fffffffu);
  }
  squares[lid] = sum;
  largest[lid] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) {
      squares[lid] += squares[lid + half_size];
      largest[lid] = max(largest[lid], largest[lid + half_size]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const bool finite = largest[0] < 0x7f800000u;
  const float height = as_float(largest[0]);
  const float factor = finite && height > LEAST ? LARGEST / height : 0.0f;
  if (lid == 0) {
    const float norm = has_gain ? 1.0f / sqrt(squares[0] / (float)k + eps) : 1.0f;
    scales[row] = finite ? height / LARGEST * norm * 0.0625f : as_float(0x7fc00000);
  }
  for (uint i = lid; i < k; i += GROUP) {
    const float value = used ? x[i] : 0.0f;
    const int whole =
        factor == 0.0f ? 0 : convert_int_rte((has_gain ? value * gain[i] : value) * factor);
    const int low = ((whole + 128) & 255) - 128;
    const int rest = (whole - low) >> 8;
    const int middle = ((rest + 128) & 255) - 128;
    const uint at = i / 128 * 128 + i % 32 / 8 * 32 + i % 128 / 32 * 8 + i % 2 * 4 + i % 8 / 2;
    limbs[at] = (char)((rest - middle) >> 8);
    limbs[k + at] = (char)middle;
    limbs[2 * k + at] = (char)low;
  }
}
