#include "troika/device/opencl/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "troika/model/k_quants.h"

namespace troika::device::opencl {
namespace {

using graph::WeightSlice;
using model::TensorType;

constexpr int64_t kBlock = 32;  // weights
constexpr uintptr_t kPageBytes = 4096;
constexpr int64_t kAlignment = 256;  // of the scales
constexpr int64_t kWordBytes = 4;
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBlocks = 4;

constexpr int64_t kSuperBlocks = 8;   // of 32 weights in a block of K-quants
constexpr int64_t kSuperScales = 20;  // bytes that packed.cl has for its scales

bool is_super(TensorType type) { return type == TensorType::kQ4_K || type == TensorType::kQ6_K; }
// Bytes for each 32 weights; not of K-quants, which have kSuperScales for 256.
int64_t scale_bytes(TensorType type) { return type == TensorType::kQ4_1 ? 4 : 2; }
int64_t quant_bytes(TensorType type) {
  if (type == TensorType::kQ4_K) return kBlock / 2;
  if (type == TensorType::kQ6_K) return kBlock;
  return model::traits(type).block_bytes - scale_bytes(type);
}

bool is_plain(TensorType type) { return model::traits(type).block_weights == 1; }

// Nibbles i and i + 16 share a byte in the file; here 2 i and 2 i + 1.
void pack_nibbles(const std::byte* from, std::byte* to) {
  constexpr int kHalf = kBlock / 4;
  constexpr std::byte kLow{15};
  for (int i = 0; i < kHalf; ++i) {
    to[i] = (from[2 * i] & kLow) | ((from[2 * i + 1] & kLow) << 4);
    to[i + kHalf] = (from[2 * i] >> 4) | ((from[2 * i + 1] >> 4) << 4);
  }
}

void pack_block(TensorType type, const std::byte* block, std::byte* quants, std::byte* scales) {
  const int64_t head = scale_bytes(type);
  std::memcpy(scales, block, static_cast<size_t>(head));
  if (type != TensorType::kQ8_0) return pack_nibbles(block + head, quants);
  constexpr std::byte kSign{128};
  for (int64_t i = 0; i < kBlock; ++i) quants[i] = block[head + i] ^ kSign;
}

std::byte nibble_pair(uint32_t first, uint32_t second) {
  return static_cast<std::byte>(first | second << 4);
}

// 8 chunks of 16 bytes, and their scales.
void pack_q4_k(const std::byte* block, std::byte* quants, std::byte* scales) {
  using model::Q4KBlock;
  constexpr int kQuants = Q4KBlock::kScales + 12;
  for (int i = 0; i < Q4KBlock::kParts * static_cast<int>(kBlock) / 2; ++i) {
    const int chunk = i / 16;
    const std::byte* from = block + kQuants + chunk / 2 * kBlock + i % 16 * 2;
    const auto nibble = [&](int at) {
      return std::to_integer<uint32_t>(from[at] >> (chunk % 2 * 4)) & 15u;
    };
    quants[i] = nibble_pair(nibble(0), nibble(1));
  }
  std::memcpy(scales, block, Q4KBlock::kScales);  // d and dmin
  model::SixBits factors{};
  model::SixBits minima{};
  model::unpack_scales(block + Q4KBlock::kScales, factors, minima);
  for (size_t i = 0; i < factors.size(); ++i) {
    scales[Q4KBlock::kScales + 2 * i] = std::byte{factors[i]};
    scales[Q4KBlock::kScales + 2 * i + 1] = std::byte{minima[i]};
  }
}

// 8 chunks of 32 bytes, and their scales.
void pack_q6_k(const std::byte* block, std::byte* quants, std::byte* scales) {
  using model::Q6KBlock;
  for (int i = 0; i < model::kSuperBlock; ++i) {
    const std::byte low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4);
    const std::byte high = block[Q6KBlock::kHigh + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2);
    quants[i] = (low & std::byte{15}) | ((high & std::byte{3}) << 4);
  }
  std::memcpy(scales, block + Q6KBlock::kD, 2);
  std::memcpy(scales + 2, block + Q6KBlock::kScales, Q6KBlock::kParts);
}

// As word_place() and scale_place() of packed.cl, in bytes.
struct Places {
  int64_t blocks = 0;  // of a row
  int64_t quant_bytes = 0;
  int64_t scale_bytes = 0;
  Order order = Order::kRows;

  int64_t step(int64_t row, int64_t block) const {
    return row / kTileRows * (blocks / kTileBlocks) + block / kTileBlocks;
  }
  int64_t word(int64_t row, int64_t block, int64_t i) const {
    if (order == Order::kRows) return (row * blocks + block) * quant_bytes + i * kWordBytes;
    const int64_t lane = row % 8 * 4 + i;
    const int64_t four = (step(row, block) * 2 + row % kTileRows / 8) * 32 + lane;
    return (four * kTileBlocks + block % kTileBlocks) * kWordBytes;
  }
  int64_t scale(int64_t row, int64_t block) const {
    if (order == Order::kRows) return (row * blocks + block) * scale_bytes;
    const int64_t eight = step(row, block) * 8 + row % 8;
    return (eight * 8 + row % kTileRows / 8 * 4 + block % kTileBlocks) * scale_bytes;
  }
};

// Chunks row by row.
PackedWeight pack_super(const WeightSlice& slice) {
  const TensorType type = slice.weight->type;
  const int64_t blocks = slice.k / model::kSuperBlock;
  const int64_t quants = quant_bytes(type) * kSuperBlocks;
  PackedWeight packed;
  packed.scales = packed_scales(type, slice.n, slice.k);
  packed.bytes.resize(static_cast<size_t>(packed_bytes(type, slice.n, slice.k)));
  for (int64_t i = 0; i < slice.n; ++i) {
    const std::byte* block = row_of(slice, i);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t at = i * blocks + b;
      std::byte* const to = packed.bytes.data() + at * quants;
      std::byte* const scales = packed.bytes.data() + packed.scales + at * kSuperScales;
      type == TensorType::kQ4_K ? pack_q4_k(block, to, scales) : pack_q6_k(block, to, scales);
      block += model::traits(type).block_bytes;
    }
  }
  return packed;
}

}  // namespace

bool can_read(TensorType type) {
  constexpr TensorType kKnown[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16,
                                   TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ8_0,
                                   TensorType::kQ4_K, TensorType::kQ6_K};
  return std::find(std::begin(kKnown), std::end(kKnown), type) != std::end(kKnown);
}

int64_t packed_scales(TensorType type, int64_t n, int64_t k) {
  if (is_plain(type)) return 0;
  return (n * (k / kBlock) * quant_bytes(type) + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t packed_bytes(TensorType type, int64_t n, int64_t k) {
  if (is_plain(type)) return n * model::row_bytes(type, k);
  const int64_t scales = is_super(type) ? n * (k / kBlock / kSuperBlocks) * kSuperScales
                                        : n * (k / kBlock) * scale_bytes(type);
  return packed_scales(type, n, k) + scales;
}

bool can_tile(const WeightSlice& slice) {
  return slice.weight->type == TensorType::kQ4_0 && slice.n % kTileRows == 0 &&
         slice.k % (kTileBlocks * kBlock) == 0;
}

PackedWeight pack(const WeightSlice& slice, Order order) {
  const TensorType type = slice.weight->type;
  if (is_plain(type)) return {gather_rows(slice), 0};
  if (is_super(type)) return pack_super(slice);
  const Places places{slice.k / kBlock, quant_bytes(type), scale_bytes(type), order};
  PackedWeight packed;
  packed.scales = packed_scales(type, slice.n, slice.k);
  packed.bytes.resize(static_cast<size_t>(packed_bytes(type, slice.n, slice.k)));
  std::array<std::byte, kBlock> quants{};
  for (int64_t i = 0; i < slice.n; ++i) {
    const std::byte* block = row_of(slice, i);
    for (int64_t b = 0; b < places.blocks; ++b) {
      pack_block(type, block, quants.data(),
                 packed.bytes.data() + packed.scales + places.scale(i, b));
      for (int64_t word = 0; word < places.quant_bytes / kWordBytes; ++word) {
        std::memcpy(packed.bytes.data() + places.word(i, b, word),
                    quants.data() + word * kWordBytes, kWordBytes);
      }
      block += model::traits(type).block_bytes;
    }
  }
  return packed;
}

// Whole pages around the weight, which a driver can take as they are.
Result<DeviceWeight> Weights::share(const WeightSlice& slice) const {
  const auto address = reinterpret_cast<uintptr_t>(slice.weight->data);
  const uintptr_t begin = address / kPageBytes * kPageBytes;
  const uintptr_t end = address + static_cast<uintptr_t>(slice.weight->bytes());
  cl_int code = CL_SUCCESS;
  DeviceWeight weight;
  weight.memory =
      BufferHandle(api().CreateBuffer(context_, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, end - begin,
                                      reinterpret_cast<void*>(begin), &code));
  RETURN_IF_ERROR(check_call("clCreateBuffer", code));
  weight.begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row_of(slice, 0)) - begin);
  weight.row_stride = slice.weight->row_bytes();
  return weight;
}

Result<DeviceWeight> Weights::upload(const WeightSlice& slice, Order order) const {
  PackedWeight packed;
  if (home_ == WeightHome::kOwnPacked) {
    packed = pack(slice, order);
  } else {
    packed.bytes = gather_rows(slice);
  }
  DeviceWeight weight;
  weight.tiled = home_ == WeightHome::kOwnPacked && order == Order::kTiles;
  weight.row_stride = model::row_bytes(slice.weight->type, slice.k);
  weight.own_bytes = static_cast<int64_t>(packed.bytes.size());
  const auto put = [&]() -> Status {
    ASSIGN_OR_RETURN(weight.memory, arena_.take(weight.own_bytes));
    weight.begin = weight.memory.begin();
    weight.scales = weight.begin + packed.scales;
    return check_call("its upload",
                      api().EnqueueWriteBuffer(
                          queue_, weight.buffer(), CL_TRUE, static_cast<size_t>(weight.begin),
                          packed.bytes.size(), packed.bytes.data(), 0, nullptr, nullptr));
  };
  const Status done = put();
  if (done) return weight;
  return make_error(done.error().code, "no room for {} ({} bytes) beside {} bytes of weights: {}",
                    slice.weight->name, weight.own_bytes, own_bytes(), done.error().message);
}

Result<std::shared_ptr<const DeviceWeight>> Weights::get(const WeightSlice& slice, Order order) {
  if (auto weight = held_.find({slice, order})) return weight;
  ASSIGN_OR_RETURN(DeviceWeight made,
                   home_ == WeightHome::kShared ? share(slice) : upload(slice, order));
  made.n = slice.n;
  made.k = slice.k;
  auto weight = std::make_shared<const DeviceWeight>(std::move(made));
  held_.keep({slice, order}, weight);
  return weight;
}

int64_t Weights::own_bytes() const {
  return held_.total([](const DeviceWeight& weight) { return weight.own_bytes; });
}

}  // namespace troika::device::opencl
