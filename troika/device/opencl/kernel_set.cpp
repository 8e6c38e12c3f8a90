#include "troika/device/opencl/kernel_set.h"

#include "troika/device/opencl/sources.h"

namespace troika::device::opencl {
namespace {

int number(model::TensorType type) { return static_cast<int>(type); }

// So few registers that `items` work-items fit a compute unit.
std::string register_limit(int64_t items) {
  constexpr int64_t kRegisters = 65536;
  constexpr int64_t kMost = 255;
  const int64_t each = kRegisters / items / 8 * 8;
  return each > kMost ? "" : fmt::format(" -cl-nv-maxrregcount={}", each);
}

}  // namespace

// As measured with PoCL on 16 vector registers of eight floats: quants are worth being unpacked for
// more rows than what is a float already.
HostShape KernelSet::host_shape(model::TensorType type, int64_t rows) {
  if (rows == 1) return {4, 1};
  const bool is_quantized = model::traits(type).block_weights > 1;
  return {1, is_quantized && rows > 4 ? 8 : 4};
}

FewShape KernelSet::few_shape(model::TensorType type, int64_t rows, bool gated) const {
  const auto found = tiles_.find(type);
  const TileChoice choice = found == tiles_.end() ? TileChoice() : found->second;
  if (rows == 1) return gated ? choice.one_gated : choice.one;
  FewShape shape = choice.few;
  if (rows == 2) shape.rows = 2;
  return shape;
}

// Large tiles read less; but every compute unit should have one.
ManyShape KernelSet::many_shape(model::TensorType type, int64_t rows, int64_t outputs) const {
  const auto found = tiles_.find(type);
  const ManyShape large = found == tiles_.end() ? TileChoice().many : found->second.many;
  constexpr int64_t kLeastTiles = 96;
  const int64_t tiles =
      ((rows + large.tile_m - 1) / large.tile_m) * ((outputs + large.tile_n - 1) / large.tile_n);
  if (rows <= 32) return {32, 64, 4, 4};
  return rows > 64 && tiles >= kLeastTiles ? large : ManyShape{64, 64, 4, 8};
}

std::optional<OneShape> KernelSet::one_shape(const OneProduct& product) const {
  const auto found = ones_.find(product);
  if (found == ones_.end()) return std::nullopt;
  return found->second;
}

std::optional<RowsShape> KernelSet::rows_shape(const OneProduct& product, int64_t rows) const {
  OneProduct plain = product;
  plain.gated = false;  // done by a launch of its own
  plain.gain = false;   // done with the limbs
  for (const int most : {8, 16, static_cast<int>(kMostUnitRows)}) {
    const auto found = units_.find({plain, most});
    if (rows > 1 && rows <= most && found != units_.end()) return found->second;
  }
  return std::nullopt;
}

Result<cl_kernel> KernelSet::host_product(model::TensorType type, const HostShape& shape) {
  return programs_.kernel({{kWeightsSource, kProductHostSource},
                           fmt::format("-D WEIGHT={} -D OUTPUTS={} -D ROWS={}", number(type),
                                       shape.outputs, shape.rows)},
                          "product");
}

Result<cl_kernel> KernelSet::few_product(model::TensorType type, const FewShape& shape, bool gated,
                                         bool tiled, bool together) {
  return programs_.kernel(
      {{kWeightsSource, kPackedSource, kProductFewSource},
       fmt::format("-D WEIGHT={} -D TILED={} -D OUTPUTS={} -D ROWS={} -D GROUP={} -D GATED={} "
                   "-D TOGETHER={}",
                   number(type), int{tiled}, shape.outputs, shape.rows, shape.group, int{gated},
                   int{together})},
      "product_few");
}

Result<cl_kernel> KernelSet::many_product(model::TensorType type, const ManyShape& shape,
                                          bool tiled) {
  return programs_.kernel(
      {{kWeightsSource, kPackedSource, kProductManySource},
       fmt::format("-D WEIGHT={} -D TILED={} -D TILE_M={} -D TILE_N={} -D ITEM_M={} -D ITEM_N={}",
                   number(type), int{tiled}, shape.tile_m, shape.tile_n, shape.item_m,
                   shape.item_n)},
      "product_many");
}

Result<cl_kernel> KernelSet::one_product(int64_t inputs, const OneShape& shape, bool gated,
                                         bool gain, std::optional<KvType> kv, bool together) {
  const int64_t kv_bytes = kv ? kv_type_bytes(*kv) : 0;
  const Traits traits{1,
                      inputs,
                      shape.warps,
                      shape.groups,
                      shape.ahead,
                      int64_t{gated},
                      int64_t{gain},
                      kv_bytes,
                      int64_t{together}};
  return kept(traits, [&] {
    return programs_.kernel(
        {{kUnitsSource, kCacheSource, kProductOneSource},
         fmt::format("-D INPUTS={} -D WARPS={} -D AHEAD={} -D GATED={} -D GAIN={} -D KV_BYTES={} "
                     "-D TOGETHER={}{}",
                     inputs, shape.warps, shape.ahead, int{gated}, int{gain}, kv_bytes,
                     int{together}, register_limit(int64_t{shape.group()} * shape.groups))},
        "product_one");
  });
}

Result<cl_kernel> KernelSet::rows_product(int64_t inputs, const RowsShape& shape, bool together) {
  return programs_.kernel(
      {{kUnitsSource, kProductRowsSource},
       fmt::format("-D INPUTS={} -D ROWS={} -D WARPS={} -D GROUP={} -D EMULATE={} -D TOGETHER={}",
                   inputs, shape.rows, shape.warps, shape.group(), int{emulate_}, int{together})},
      "product_rows");
}

Result<cl_kernel> KernelSet::limbs() {
  return programs_.kernel({{kLimbsSource}, ""}, "make_limbs");
}

Result<cl_kernel> KernelSet::embed(model::TensorType type, bool tiled) {
  return programs_.kernel({{kWeightsSource, kPackedSource, kEmbedSource},
                           fmt::format("-D WEIGHT={} -D PACKED={} -D TILED={}", number(type),
                                       class_ == DeviceClass::kGpu ? 1 : 0, int{tiled})},
                          "embed");
}

ProgramText KernelSet::attention_program(int64_t head_dim, KvType kv) const {
  return {{kCacheSource, kAttentionSource},
          fmt::format("-D HEAD_DIM={} -D KV_BYTES={} -D HOST={}", head_dim, kv_type_bytes(kv),
                      class_ == DeviceClass::kHost ? 1 : 0)};
}

Result<cl_kernel> KernelSet::attention(int64_t head_dim, KvType kv) {
  return programs_.kernel(attention_program(head_dim, kv), "attention");
}

cl_kernel KernelSet::attention_few(int64_t head_dim, KvType kv, int64_t queries, bool together) {
  if ((!ptx_ && !emulate_) || queries > kMostQueries) return nullptr;
  const auto kernel = kept({2, head_dim, kv_type_bytes(kv), queries, int64_t{together}}, [&] {
    // Two work-groups of 256 on a compute unit.
    return programs_.kernel(
        {{kCacheSource, kAttentionFewSource},
         fmt::format("-D HEAD_DIM={} -D KV_BYTES={} -D QUERIES={} -D EMULATE={} -D TOGETHER={}{}",
                     head_dim, kv_type_bytes(kv), queries, int{emulate_}, int{together},
                     emulate_ ? "" : register_limit(512))},
        "attention_few");
  });
  if (kernel) return *kernel;
  // Known to be refused: the other kernel is as right.
  ptx_ = false;
  return nullptr;
}

Result<cl_kernel> KernelSet::join_splits(int64_t head_dim, KvType kv) {
  return programs_.kernel(attention_program(head_dim, kv), "join_splits");
}

Result<cl_kernel> KernelSet::row_kernel(const char* name, KvType kv) {
  return programs_.kernel({{kCacheSource, kRowsSource},
                           fmt::format("-D KV_BYTES={} -D HOST={}", kv_type_bytes(kv),
                                       class_ == DeviceClass::kHost ? 1 : 0)},
                          name);
}

}  // namespace troika::device::opencl
