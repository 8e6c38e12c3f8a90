// The table of the shared kernels as compiled for one instruction set.

namespace troika::device::cpu {
namespace {

constexpr KernelTable make_table(std::string_view name) {
  KernelTable table;
  table.name = name;
  table.matmul = matmul;
  table.matmul_scratch_floats = matmul_scratch_floats;
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.silu_mul = silu_mul;
  table.add = add_rows;
  table.dequantize_row = dequantize_row;
  table.attention = attention;
  table.attention_scratch_floats = attention_scratch_floats;
  table.kv_write = kv_write;
  table.fma_burst = fma_burst;
  return table;
}

}  // namespace
}  // namespace troika::device::cpu
