// What an OpenCL device gives, kernel by kernel, without a model file:
//   opencl_bench DEVICE [MODEL] [--small] [--skip-kernels] [--skip-tiles] [--skip-conformance]
// DEVICE as after "opencl:" ("nvidia", "pocl", "0"). Prints facts, launch costs, read rate against
// size, products of Llama-3-8B's shapes with every tile size (Q4_0, random weights) against their
// roofline, attention, the conformance catalogue, and with a MODEL prefill and decode through the
// executor. --small: a sixteenth of the sizes, for runtimes on a processor.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/opencl_model.h"
#include "bench/opencl_session.h"

namespace troika::bench {

void Bench::attention() {
  const int64_t heads = small_ ? 4 : 32;
  const int64_t kv_heads = heads / 4;
  const int64_t dim = 128;
  std::printf("\nattention, %lld heads of 128, 4 to a KV head, keys not split:\n",
              static_cast<long long>(heads));
  struct Batch {
    int64_t rows;
    int64_t depth;
  };
  for (const Batch batch : {Batch{1, 128}, Batch{1, 512}, Batch{1, 2048}, Batch{1, 8192},
                            Batch{32, 512}, Batch{512, 0}}) {
    const int64_t tokens = batch.depth + batch.rows;
    const int64_t blocks = (tokens + 31) / 32;
    const int64_t head_floats = blocks * 32 * dim;
    const Piece kv = buffer(2 * kv_heads * head_floats * 4);
    const Piece x = buffer(batch.rows * heads * dim * 4);
    const Piece y = buffer(batch.rows * heads * dim * 4);
    std::vector<int32_t> data(static_cast<size_t>(2 * batch.rows));
    for (int64_t i = 0; i < batch.rows; ++i) {
      data[static_cast<size_t>(2 * i)] = static_cast<int32_t>(2 * batch.rows);
      data[static_cast<size_t>(2 * i + 1)] =
          static_cast<int32_t>(batch.rows == 32 ? batch.depth : batch.depth + i);
    }
    for (int64_t i = 0; i < blocks; ++i) data.push_back(static_cast<int32_t>(i));
    const Piece places = buffer(static_cast<int64_t>(data.size()) * 4);
    need(check_call(
        "clEnqueueWriteBuffer",
        api().EnqueueWriteBuffer(queue_, places.get(), CL_TRUE, static_cast<size_t>(places.begin()),
                                 data.size() * 4, data.data(), 0, nullptr, nullptr)));
    const cl_kernel kernel = need(kernels_.attention(dim, device::KvType::kF32));
    Arguments arguments(kernel);
    arguments.buffer(x.get()).place(x.place().floats()).count(heads * dim);
    arguments.buffer(kv.get())
        .place(kv.place().floats())
        .place(static_cast<uint64_t>(2 * head_floats))
        .place(static_cast<uint64_t>(head_floats));
    arguments.buffer(places.get()).place(places.place().floats()).count(0);
    arguments.buffer(y.get()).place(y.place().floats()).count(heads * dim);
    arguments.count(0).count(4).value(0.088f).count(batch.rows).count(heads);
    arguments.buffer(y.get()).place(y.place().floats()).count(1);
    LaunchSize size;
    size.global = {static_cast<size_t>(heads * 256), static_cast<size_t>(batch.rows)};
    size.local = {256, 1};
    const double us = 1e6 * time(8, [&](int) { need(launch(queue_, arguments, size)); });
    std::printf("  %lld row(s) at depth %lld: %.1f us\n", static_cast<long long>(batch.rows),
                static_cast<long long>(batch.depth), us);
  }
}

namespace {

void print(const DeviceFacts& f) {
  std::printf("%s, %s, driver %s, %s, %lld units, %.1f GB\n", f.name.c_str(),
              f.platform_name.c_str(), f.driver.c_str(), f.version.c_str(),
              static_cast<long long>(f.units), static_cast<double>(f.memory_bytes) / 1e9);
}

}  // namespace
}  // namespace troika::bench

int main(int argc, char** argv) {
  using namespace troika::bench;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<std::string> words;
  bool small = false;
  bool check = true;
  bool tiles = true;
  bool kernels = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small") {
      small = true;
    } else if (word == "--skip-conformance") {
      check = false;
    } else if (word == "--skip-kernels") {
      kernels = false;
    } else if (word == "--skip-tiles") {
      tiles = false;
    } else {
      words.push_back(word);
    }
  }
  if (words.empty() || words.size() > 2) {
    fail(
        "usage: opencl_bench DEVICE [MODEL] [--small] [--skip-kernels] [--skip-tiles] "
        "[--skip-conformance]");
  }
  for (const std::string& line : need(list_devices())) std::printf("%s\n", line.c_str());
  double read_gbps = 0;
  {
    Bench bench(words[0], small, true);
    print(bench.facts());
    bench.launches();
    bench.stream();
    if (kernels) {
      bench.one_products();
      bench.row_products(8);
      bench.row_products(32);
      bench.attention();
    }
    if (kernels && tiles) {
      bench.few_products(1);
      bench.few_products(4);
      bench.few_products(32);
      bench.many_products(32);
      if (!small) bench.many_products(512);
    }
    read_gbps = bench.read_gbps();
  }
  if (check) conformance(words[0]);
  if (words.size() == 2) whole_model(words[0], words[1], read_gbps);
  return 0;
}
