// Rows of the embedding by token. Items: width, by rows.
__kernel void embed(__global const uchar *w, ulong w_begin, ulong w_stride, ulong scales,
                    __global const int *batch, ulong tokens,
                    __global float *y, ulong y_begin, uint y_stride, uint width) {
  const ulong row = get_global_id(1);
  const uint i = get_global_id(0);
  if (i >= width) return;
  const ulong token = batch[tokens + row];
#if !BLOCKED
  const float value = plain_1(w + w_begin + token * w_stride + (ulong)i * WEIGHT_BYTES);
#elif PACKED
  const uint per_word = 32 / QUANT_WORDS;
  const uint word = ((__global const uint *)(w + w_begin))[word_place(token, i / 32, width / 32,
                                                         i % 32 / per_word)];
  const uint bits = 32 / per_word;
  const float quant = (float)(word >> i % per_word * bits & ((1u << bits) - 1));
  const ulong chunk = scale_place(token, i / 32, width / 32);
  const float2 stored = stored_factors(w + scales, chunk, i % 32 / PART);
  const float value = stored.x * quant + stored.y;
#else
  float eight[8];
  vstore8(chunk_8(w + w_begin + token * w_stride, i / 32, i % 32 / 8), 0, eight);
  const float value = eight[i % 8];
#endif
  y[y_begin + row * y_stride + i] = value;
}
