// Speeds of the CPU kernels on one thread, against the machine's peaks.
//
//   matmul/<kernels>/<type>/<N>x<K>/<M>   GFLOPS (2 M N K), peak_% of multiply-adds in registers;
//                                         GB/s of stored weights (each byte counted once), read_%
//                                         of what one thread reads from memory
//   attention/<kernels>/<kv type>/<rows>@<position>   GFLOPS (4 x head_dim for each visible key)
//
// Times are the thread's own CPU time, and rates those of the quickest iteration, so that a busy
// machine disturbs them less.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "troika/device/cpu/kernels/kernels_reference.h"
#include "troika/profile/peak_probe.h"

namespace troika::device::cpu {
namespace {

using testing::Random;
using testing::Scratch;

struct Peaks {
  double gflops = 0;
  double read_gbps = 0;
};

const Peaks& peaks() {
  static const Peaks measured = [] {
    Peaks p;
    if (const auto gflops = profile::measure_fma_gflops(1)) p.gflops = *gflops;
    if (const auto gbps = profile::measure_read_gbps(1, int64_t{128} << 20)) p.read_gbps = *gbps;
    return p;
  }();
  return measured;
}

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Runs the benchmark's iterations and reports operations and bytes of one over the shortest time.
template <class Work>
void time_iterations(benchmark::State& state, double flops, double bytes, const Work& work) {
  // An iteration lasts 50 us or more, which the clock can tell from nothing.
  int repeats = 0;
  for (const double start = thread_seconds(); thread_seconds() - start < 50e-6; ++repeats) work();
  double shortest = 1e9;
  for (auto _ : state) {
    const double start = thread_seconds();
    for (int i = 0; i < repeats; ++i) {
      work();
      benchmark::ClobberMemory();
    }
    const double seconds = (thread_seconds() - start) / repeats;
    state.SetIterationTime(seconds);
    shortest = std::min(shortest, seconds);
  }
  const double gflops = flops / shortest / 1e9;
  const double gbps = bytes / shortest / 1e9;
  state.counters["GFLOPS"] = gflops;
  state.counters["GB/s"] = gbps;
  if (peaks().gflops > 0) state.counters["peak_%"] = 100 * gflops / peaks().gflops;
  if (peaks().read_gbps > 0) state.counters["read_%"] = 100 * gbps / peaks().read_gbps;
}

void matmul(benchmark::State& state, const KernelTable& kernels, model::TensorType type, int64_t m,
            int64_t n, int64_t k) {
  Random random(1);
  const int64_t stride = testing::stored_bytes(type, k);
  std::vector<std::byte> w(static_cast<size_t>(n * stride));
  // One random row, repeated: quick to make, and no kernel looks across rows.
  random.fill_row(type, w.data(), k);
  for (int64_t i = 1; i < n; ++i) std::memcpy(w.data() + i * stride, w.data(), stride);
  const std::vector<float> x = random.floats(m * k);
  std::vector<float> y(static_cast<size_t>(m * n));
  const Scratch scratch(kernels.matmul_scratch_floats(m, k));
  MatMulArgs args;
  args.x = x.data();
  args.x_stride = k;
  args.m = m;
  args.w = w.data();
  args.w_stride = stride;
  args.n = n;
  args.k = k;
  args.y = y.data();
  args.y_stride = n;
  args.scratch = scratch.get();
  time_iterations(state, 2.0 * static_cast<double>(m * n * k), static_cast<double>(n * stride),
                  [&] { kernels.matmul(type, args); });
}

// The shape of SmolLM2-135M: 3 query heads on each KV head, 64 wide.
void attention(benchmark::State& state, const KernelTable& kernels, KvType type, int64_t rows,
               int64_t position) {
  constexpr int64_t kGroup = 3;
  constexpr int64_t kHeadDim = 64;
  Random random(2);
  const int64_t blocks = (position + rows + kKvBlockTokens - 1) / kKvBlockTokens;
  const auto bytes = static_cast<size_t>(blocks * kKvBlockTokens * kHeadDim * kv_type_bytes(type));
  std::vector<std::byte> k(bytes), v(bytes);
  std::vector<int32_t> table;
  for (int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<int32_t>(b));
  for (int64_t t = 0; t < blocks * kKvBlockTokens; ++t) {
    const std::vector<float> values = random.floats(2 * kHeadDim);
    const int64_t block = t / kKvBlockTokens * kKvBlockTokens * kHeadDim * kv_type_bytes(type);
    kernels.kv_write({.k = values.data(),
                      .v = values.data() + kHeadDim,
                      .head_dim = kHeadDim,
                      .k_block = k.data() + block,
                      .v_block = v.data() + block,
                      .slot = t % kKvBlockTokens,
                      .kv_type = type});
  }
  const std::vector<float> q = random.floats(rows * kGroup * kHeadDim);
  std::vector<float> out(q.size());
  const Scratch scratch(kernels.attention_scratch_floats(kGroup, kHeadDim));
  AttentionArgs args;
  args.q = q.data();
  args.q_stride = kGroup * kHeadDim;
  args.n_rows = rows;
  args.n_group = kGroup;
  args.head_dim = kHeadDim;
  args.first_position = position;
  args.k = k.data();
  args.v = v.data();
  args.kv_type = type;
  args.block_table = table.data();
  args.scale = 0.125f;
  args.out = out.data();
  args.out_stride = kGroup * kHeadDim;
  args.scratch = scratch.get();
  double keys = 0;
  for (int64_t r = 0; r < rows; ++r) keys += static_cast<double>(position + r + 1);
  time_iterations(state, 4.0 * kGroup * kHeadDim * keys,
                  static_cast<double>((position + rows) * 2 * kHeadDim * kv_type_bytes(type)),
                  [&] { kernels.attention(args); });
}

void register_all() {
  struct Shape {
    int64_t n, k;
    std::vector<model::TensorType> types;
  };
  using model::TensorType;
  const std::vector<TensorType> all(std::begin(testing::kAllTypes), std::end(testing::kAllTypes));
  const Shape shapes[] = {
      {576, 768, all},
      {1536, 576, {TensorType::kQ4_1}},
      {576, 1536, {TensorType::kQ4_1}},
      {49152, 576, {TensorType::kQ8_0}},
      {2048,
       2048,
       {TensorType::kQ4_1, TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16,
        TensorType::kQ4_K, TensorType::kQ6_K}},
      {14336, 4096, {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ4_K, TensorType::kQ6_K}},
  };
  for (const KernelTable* kernels : available_kernels()) {
    const std::string prefix(kernels->name);
    for (const auto& [n, k, types] : shapes) {
      for (const TensorType type : types) {
        for (const int64_t m : {1, 4, 16, 64, 128, 512}) {
          const std::string name = "matmul/" + prefix + "/" + testing::name_of(type) + "/" +
                                   std::to_string(n) + "x" + std::to_string(k) + "/" +
                                   std::to_string(m);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [=, n = n, k = k](benchmark::State& state) {
                                         matmul(state, *kernels, type, m, n, k);
                                       })
              ->UseManualTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
    for (const KvType type : {KvType::kF32, KvType::kF16}) {
      for (const auto& [rows, position] :
           {std::pair<int64_t, int64_t>{1, 127}, {1, 2047}, {128, 0}, {512, 0}, {512, 1536}}) {
        const std::string name = "attention/" + prefix +
                                 (type == KvType::kF32 ? "/F32/" : "/F16/") + std::to_string(rows) +
                                 "@" + std::to_string(position);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=, r = rows, p = position](benchmark::State& state) {
                                       attention(state, *kernels, type, r, p);
                                     })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace troika::device::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const auto& [gflops, read_gbps] = troika::device::cpu::peaks();
  benchmark::AddCustomContext("peak_gflops_1_thread", std::to_string(gflops));
  benchmark::AddCustomContext("read_gbps_1_thread", std::to_string(read_gbps));
  troika::device::cpu::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
