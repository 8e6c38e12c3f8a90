// What an OpenCL device gives, kernel by kernel, without a model file:
//   opencl_bench DEVICE [MODEL] [--small] [--skip-tiles] [--skip-conformance]
// DEVICE as after "opencl:" ("nvidia", "pocl", "0"). Prints facts, launch costs, read rate against
// size, products of Llama-3-8B's shapes with every tile size (Q4_0, random weights) against their
// roofline, attention, the conformance catalogue, and with a MODEL prefill and decode through the
// executor. --small: a sixteenth of the sizes, for runtimes on a processor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "troika/device/conformance/run_case.h"
#include "troika/device/opencl/device.h"
#include "troika/device/opencl/product_launch.h"
#include "troika/engine/engine.h"

namespace {

using namespace troika;
using namespace troika::device::opencl;

// From a dependent streaming kernel: what one launch costs on top of its bytes.
constexpr double kLaunchUs = 3.3;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "error: opencl_bench: %s\n", message.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) fail(result.error().message);
  return std::move(*result);
}
void need(const Status& status) {
  if (!status) fail(status.error().message);
}

constexpr std::string_view kStreamSource = R"(
__kernel void nothing(__global float *x) { if (get_global_id(0) == ~0u) x[0] = 0.0f; }
__kernel void read(__global const float4 *x, __global float *y, uint n) {
  float4 sum = (float4)0.0f;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
  if (sum.x + sum.y + sum.z + sum.w == 12345.0f) y[0] = sum.x;
}
)";

class Bench {
 public:
  Bench(const std::string& device, bool small)
      : small_(small),
        session_(need(open_session([&] {
          OpenClOptions options;
          options.instance = device;
          options.gpu_kernels = true;
          return options;
        }()))),
        programs_(session_.context.get(), session_.facts, ""),
        kernels_(DeviceClass::kGpu, programs_),
        queue_(session_.queue.get()) {}

  void facts() const {
    const DeviceFacts& f = session_.facts;
    std::printf("%s, %s, driver %s, %s, %lld units, %.1f GB\n", f.name.c_str(),
                f.platform_name.c_str(), f.driver.c_str(), f.version.c_str(),
                static_cast<long long>(f.units), static_cast<double>(f.memory_bytes) / 1e9);
  }

  // Seconds of one of `repeats` queued one after the other; the best of a few tries.
  double time(int repeats, const std::function<void(int)>& queue_one) {
    constexpr int kTries = 5;
    double best = 1e30;
    for (int i = 0; i < 2; ++i) queue_one(i);
    need(check_call("clFinish", api().Finish(queue_)));
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const TimePoint start = system_clock().now();
      for (int i = 0; i < repeats; ++i) queue_one(i);
      need(check_call("clFinish", api().Finish(queue_)));
      best = std::min(best, to_seconds(system_clock().now() - start) / repeats);
    }
    return best;
  }

  BufferHandle buffer(int64_t bytes) {
    cl_int code = CL_SUCCESS;
    BufferHandle made(api().CreateBuffer(session_.context.get(), CL_MEM_READ_WRITE,
                                         static_cast<size_t>(bytes), nullptr, &code));
    need(check_call("clCreateBuffer", code));
    // Small positive numbers in whatever format they are read.
    const std::vector<char> filling(static_cast<size_t>(bytes), '\x2a');
    need(check_call("clEnqueueWriteBuffer",
                    api().EnqueueWriteBuffer(queue_, made.get(), CL_TRUE, 0, filling.size(),
                                             filling.data(), 0, nullptr, nullptr)));
    return made;
  }

  void launches();
  void stream();
  void one_products();
  void few_products(int64_t rows);
  void many_products(int64_t rows);
  void attention();
  double read_gbps() const { return read_gbps_; }

 private:
  struct Shape {
    const char* name;
    std::vector<int64_t> outputs;
    int64_t inputs;
    bool gated = false;
    bool norm = false;
    bool add = false;
    int per_token = 32;  // how often in one pass
  };

  int64_t scaled(int64_t size) const { return small_ ? std::max<int64_t>(size / 16, 64) : size; }

  std::vector<Shape> shapes() const {
    const int64_t hidden = scaled(4096);
    const int64_t kv = scaled(1024);
    const int64_t ffn = scaled(14336);
    return {{"norm q k v", {hidden, kv, kv}, hidden, false, true, false, 32},
            {"o + x", {hidden}, hidden, false, false, true, 32},
            {"norm gate up silu", {ffn, ffn}, hidden, true, true, false, 32},
            {"down + x", {hidden}, ffn, false, false, true, 32},
            {"norm head", {scaled(128256)}, hidden, false, true, false, 1}};
  }

  // Any quants, and scales between a hundredth and a fiftieth.
  BufferHandle random_weights(int64_t scales, int64_t bytes) {
    BufferHandle made = buffer(bytes);
    std::mt19937 random(1);
    std::vector<uint16_t> halves(static_cast<size_t>(bytes / 2));
    for (uint16_t& half : halves) half = static_cast<uint16_t>(random());
    for (size_t i = static_cast<size_t>(scales / 2); i < halves.size(); ++i) {
      halves[i] = static_cast<uint16_t>(0x2000 + halves[i] % 1024);
    }
    need(check_call("clEnqueueWriteBuffer",
                    api().EnqueueWriteBuffer(queue_, made.get(), CL_TRUE, 0, halves.size() * 2,
                                             halves.data(), 0, nullptr, nullptr)));
    return made;
  }
  BufferHandle random_floats(int64_t count) {
    BufferHandle made = buffer(count * 4);
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random);
    need(check_call("clEnqueueWriteBuffer",
                    api().EnqueueWriteBuffer(queue_, made.get(), CL_TRUE, 0, values.size() * 4,
                                             values.data(), 0, nullptr, nullptr)));
    return made;
  }
  std::vector<float> read_floats(const BufferHandle& from, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    need(check_call("clEnqueueReadBuffer",
                    api().EnqueueReadBuffer(queue_, from.get(), CL_TRUE, 0, values.size() * 4,
                                            values.data(), 0, nullptr, nullptr)));
    return values;
  }

  DeviceWeight weight(int64_t n, int64_t k) {
    DeviceWeight made;
    made.n = n;
    made.k = k;
    made.scales = (n * k / 2 + 255) / 256 * 256;
    made.own_bytes = made.scales + n * k / 32 * 2;
    made.buffer = random_weights(made.scales, made.own_bytes);
    return made;
  }

  struct Work {
    std::vector<std::vector<DeviceWeight>> weights;  // copies, each larger than caches together
    DeviceWeight gain;
    BufferHandle x;
    BufferHandle y;
    BufferHandle add;
    int64_t bytes = 0;
    int64_t macs = 0;
  };
  Work prepare(const Shape& shape, int64_t rows);
  ProductTask task_of(const Shape& shape, const Work& work, int64_t rows, int copy) const;

  const bool small_;
  Session session_;
  Programs programs_;
  KernelSet kernels_;
  cl_command_queue queue_;
  double read_gbps_ = 0;
};

void Bench::launches() {
  const BufferHandle x = buffer(64);
  const cl_kernel kernel = need(programs_.kernel({{kStreamSource}, ""}, "nothing"));
  Arguments arguments(kernel);
  arguments.buffer(x.get());
  LaunchSize size;
  size.global = {64, 1};
  size.local = {64, 1};
  const auto one = [&](int) { need(launch(queue_, arguments, size)); };
  one(0);
  need(check_call("clFinish", api().Finish(queue_)));
  const int many = 1000;
  TimePoint start = system_clock().now();
  for (int i = 0; i < many; ++i) one(i);
  const double submit = to_us(system_clock().now() - start) / many;
  need(check_call("clFinish", api().Finish(queue_)));
  const double queued = time(many, one) * 1e6;
  const double alone = time(1, one) * 1e6;
  const double finish = time(1, [](int) {}) * 1e6;
  const double flushed = time(many,
                              [&](int i) {
                                one(i);
                                api().Flush(queue_);
                              }) *
                         1e6;
  const double marked = time(many,
                             [&](int i) {
                               one(i);
                               cl_event event = nullptr;
                               api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event);
                               api().ReleaseEvent(event);
                             }) *
                        1e6;
  std::printf(
      "launch: submit %.2f us, queued one after the other %.2f us each, with a flush each %.2f us, "
      "with a marker each %.2f us; launch and clFinish %.2f us, clFinish alone %.2f us\n",
      submit, queued, flushed, marked, alone, finish);
}

void Bench::stream() {
  const cl_kernel kernel = need(programs_.kernel({{kStreamSource}, ""}, "read"));
  const int64_t most = small_ ? int64_t{128} << 20 : int64_t{4} << 30;
  const int64_t largest = std::min(most, session_.facts.largest_buffer / 2);
  const BufferHandle x = buffer(largest);
  const BufferHandle y = buffer(64);
  std::printf("read:");
  for (int64_t bytes = int64_t{1} << 20; bytes <= largest; bytes *= 4) {
    Arguments arguments(kernel);
    arguments.buffer(x.get()).buffer(y.get()).count(bytes / 16);
    LaunchSize size;
    size.global = {static_cast<size_t>(session_.facts.units * 2048), 1};
    size.local = {256, 1};
    const double seconds = time(10, [&](int) { need(launch(queue_, arguments, size)); });
    read_gbps_ = static_cast<double>(bytes) / seconds / 1e9;
    std::printf(" %lld MiB %.1f us %.0f GB/s;", static_cast<long long>(bytes >> 20), seconds * 1e6,
                read_gbps_);
  }
  std::vector<float> logits(static_cast<size_t>(scaled(128256)));
  const double back = time(1, [&](int) {
    api().EnqueueReadBuffer(queue_, x.get(), CL_TRUE, 0, logits.size() * sizeof(float),
                            logits.data(), 0, nullptr, nullptr);
  });
  std::printf(" a row of logits to the host %.1f us\n", back * 1e6);
}

Bench::Work Bench::prepare(const Shape& shape, int64_t rows) {
  const int64_t cold = small_ ? 1 : int64_t{300} << 20;
  Work work;
  int64_t widest = shape.inputs;
  do {
    std::vector<DeviceWeight>& copy = work.weights.emplace_back();
    for (const int64_t n : shape.outputs) copy.push_back(weight(n, shape.inputs));
    work.bytes = 0;
    work.macs = 0;
    for (const DeviceWeight& one : copy) {
      work.bytes += one.own_bytes;
      work.macs += one.n * one.k * rows;
      widest = std::max(widest, one.n);
    }
  } while (work.bytes * static_cast<int64_t>(work.weights.size()) < cold);
  work.gain.buffer = buffer(shape.inputs * 4);
  work.x = random_floats(rows * shape.inputs);
  work.y = buffer(rows * widest * 4 * static_cast<int64_t>(shape.outputs.size()));
  work.add = buffer(rows * widest * 4);
  return work;
}

ProductTask Bench::task_of(const Shape& shape, const Work& work, int64_t rows, int copy) const {
  const auto& weights = work.weights[static_cast<size_t>(copy) % work.weights.size()];
  ProductTask task;
  task.type = model::TensorType::kQ4_0;
  task.rows = rows;
  task.x = {work.x.get(), 0, shape.inputs};
  uint64_t begin = 0;
  for (const DeviceWeight& one : weights) {
    task.outs.push_back({&one, {work.y.get(), begin, one.n}});
    begin += static_cast<uint64_t>(rows * one.n);
  }
  task.gated = shape.gated;
  task.gain = shape.norm ? &work.gain : nullptr;
  task.eps = 1e-5f;
  task.has_add = shape.add;
  task.add = {work.add.get(), 0, weights[0].n};
  return task;
}

// Outputs, rows and work-items of a group.
std::vector<FewShape> few_tiles(int64_t rows) {
  std::vector<FewShape> tiles;
  for (const int tile_rows : {1, 2, 4, 8}) {
    if (tile_rows > rows || (rows > 1 && tile_rows < 4)) continue;
    for (const int outputs : {1, 2, 4, 8, 16}) {
      for (const int group : {32, 64, 128, 256}) {
        if (outputs * tile_rows * group * 4 > 32768) continue;
        const bool usual = outputs > 1 && outputs < 16 && (group == 64 || group == 128);
        if (rows > 1 && !usual) continue;
        tiles.push_back({outputs, tile_rows, group});
      }
    }
  }
  return tiles;
}

// Products of one row through matrix units, against the other kernel for one row.
void Bench::one_products() {
  if (!session_.facts.matrix_units) return;
  kernels_.set_compute_units(session_.facts.units);
  std::printf("\nproducts of 1 row, Q4_0, matrix units: us (warps x groups on a unit x ahead)\n");
  double total = 0;
  double total_ideal = 0;
  for (const Shape& shape : shapes()) {
    Work work = prepare(shape, 1);
    for (auto& copy : work.weights) {
      for (DeviceWeight& one : copy) one.tiled = true;
    }
    const double ideal = kLaunchUs + static_cast<double>(work.bytes) / (read_gbps_ * 1e9) * 1e6;
    const ProductTask task = task_of(shape, work, 1, 0);
    int64_t count = 0;
    for (const ProductOut& out : task.outs) count += out.weight->n;
    if (shape.gated) count = task.outs[0].weight->n;
    need(launch_few(queue_, kernels_, kernels_.few_shape(task.type, 1, shape.gated), task));
    const std::vector<float> expected = read_floats(work.y, count);
    double best = 1e30;
    std::string line;
    for (const OneShape& tile : one_shapes(shape.inputs, session_.facts.local_bytes)) {
      need(launch_one(queue_, kernels_, tile, task));
      const std::vector<float> found = read_floats(work.y, count);
      double error = 0;
      double norm = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        error += std::pow(double{found[i]} - double{expected[i]}, 2);
        norm += std::pow(double{expected[i]}, 2);
      }
      const double us = 1e6 * time(32, [&](int i) {
                          need(launch_one(queue_, kernels_, tile, task_of(shape, work, 1, i)));
                        });
      line +=
          fmt::format(" {}x{}x{} {:.1f}{}", tile.warps, tile.groups, tile.ahead, us,
                      error <= 1e-10 * norm ? "" : fmt::format(" WRONG ({:.0e})", error / norm));
      best = std::min(best, us);
    }
    total += best * shape.per_token;
    total_ideal += ideal * shape.per_token;
    std::printf("%-18s %6.1f MB ideal %.1f us; best %.1f us = %.0f GB/s (%.2f x ideal);%s\n",
                shape.name, static_cast<double>(work.bytes) / 1e6, ideal, best,
                static_cast<double>(work.bytes) / best / 1e3, best / ideal, line.c_str());
  }
  std::printf("products of a token: best %.0f us, ideal %.0f us\n", total, total_ideal);
}

void Bench::few_products(int64_t rows) {
  std::printf("\nproducts of %lld row(s), Q4_0: us of each tile (outputs x rows x work-items)\n",
              static_cast<long long>(rows));
  double total_default = 0;
  double total_best = 0;
  double total_ideal = 0;
  for (const Shape& shape : shapes()) {
    const Work work = prepare(shape, rows);
    const double ideal = kLaunchUs + static_cast<double>(work.bytes) / (read_gbps_ * 1e9) * 1e6;
    const FewShape usual = kernels_.few_shape(model::TensorType::kQ4_0, rows, shape.gated);
    double best = 1e30;
    double at_usual = 0;
    std::string best_name;
    std::string line;
    for (const FewShape& tile : few_tiles(rows)) {
      {
        const double us = 1e6 * time(32, [&](int i) {
                            need(launch_few(queue_, kernels_, tile, task_of(shape, work, rows, i)));
                          });
        const std::string name = fmt::format("{}x{}x{}", tile.outputs, tile.rows, tile.group);
        line += fmt::format(" {} {:.1f}", name, us);
        const bool is_usual =
            tile.outputs == usual.outputs && tile.rows == usual.rows && tile.group == usual.group;
        if (is_usual) at_usual = us;
        if (us < best) {
          best = us;
          best_name = name;
        }
      }
    }
    total_default += at_usual * shape.per_token;
    total_best += best * shape.per_token;
    total_ideal += ideal * shape.per_token;
    std::printf(
        "%-18s %6.1f MB ideal %.1f us; used %.1f us = %.0f GB/s (%.0f %% of ideal); best %s "
        "%.1f us (%.0f %%)\n   %s\n",
        shape.name, static_cast<double>(work.bytes) / 1e6, ideal, at_usual,
        static_cast<double>(work.bytes) / at_usual / 1e3, 100 * ideal / at_usual, best_name.c_str(),
        best, 100 * ideal / best, line.c_str());
  }
  std::printf("products of a token: used %.0f us, best %.0f us, ideal %.0f us\n", total_default,
              total_best, total_ideal);
}

void Bench::many_products(int64_t rows) {
  std::printf("\nproducts of %lld rows, Q4_0: TFLOPS of each tile (rows x outputs / item)\n",
              static_cast<long long>(rows));
  const ManyShape tiles[] = {{16, 32, 4, 4},   {32, 32, 4, 4},  {32, 64, 4, 4},   {32, 128, 4, 8},
                             {64, 32, 4, 4},   {64, 64, 4, 4},  {64, 64, 4, 8},   {64, 64, 8, 8},
                             {64, 128, 8, 8},  {128, 64, 8, 8}, {128, 128, 8, 8}, {128, 128, 16, 8},
                             {256, 64, 16, 8}, {128, 64, 8, 4}};
  double total = 0;
  double total_best = 0;
  double macs = 0;
  for (const Shape& whole : shapes()) {
    if (whole.per_token == 1 && rows > 32) continue;  // prefill wants one row of logits
    for (const int64_t outputs : whole.outputs) {
      Shape shape = whole;
      shape.outputs = {outputs};
      shape.gated = false;
      shape.norm = false;
      const Work work = prepare(shape, rows);
      const ManyShape usual = kernels_.many_shape(model::TensorType::kQ4_0, rows, outputs);
      double best = 1e30;
      double at_usual = 1e30;
      std::string best_name;
      std::string line;
      for (const ManyShape& tile : tiles) {
        if (tile.tile_m > 2 * rows) continue;
        const auto one = [&](int i) {
          return launch_many(queue_, kernels_, tile, task_of(shape, work, rows, i));
        };
        if (!one(0)) {
          line += fmt::format(" {}x{}/{}x{} refused", tile.tile_m, tile.tile_n, tile.item_m,
                              tile.item_n);
          continue;
        }
        const double seconds = time(4, [&](int i) { need(one(i)); });
        const std::string name =
            fmt::format("{}x{}/{}x{}", tile.tile_m, tile.tile_n, tile.item_m, tile.item_n);
        line += fmt::format(" {} {:.1f}", name, 2e-12 * static_cast<double>(work.macs) / seconds);
        const bool is_usual = tile.tile_m == usual.tile_m && tile.tile_n == usual.tile_n &&
                              tile.item_m == usual.item_m && tile.item_n == usual.item_n;
        if (is_usual) at_usual = seconds;
        if (seconds < best) {
          best = seconds;
          best_name = name;
        }
      }
      total += at_usual * shape.per_token;
      total_best += best * shape.per_token;
      macs += static_cast<double>(work.macs) * shape.per_token;
      std::printf("%-18s %lldx%lld: used %.0f us %.1f TFLOPS; best %s %.0f us %.1f TFLOPS\n   %s\n",
                  shape.name, static_cast<long long>(outputs), static_cast<long long>(shape.inputs),
                  at_usual * 1e6, 2e-12 * static_cast<double>(work.macs) / at_usual,
                  best_name.c_str(), best * 1e6, 2e-12 * static_cast<double>(work.macs) / best,
                  line.c_str());
    }
  }
  std::printf("products of a pass: used %.2f ms %.1f TFLOPS, best %.2f ms %.1f TFLOPS\n",
              total * 1e3, 2e-12 * macs / total, total_best * 1e3, 2e-12 * macs / total_best);
}

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
    const BufferHandle kv = buffer(2 * kv_heads * head_floats * 4);
    const BufferHandle x = buffer(batch.rows * heads * dim * 4);
    const BufferHandle y = buffer(batch.rows * heads * dim * 4);
    std::vector<int32_t> data(static_cast<size_t>(2 * batch.rows));
    for (int64_t i = 0; i < batch.rows; ++i) {
      data[static_cast<size_t>(2 * i)] = static_cast<int32_t>(2 * batch.rows);
      data[static_cast<size_t>(2 * i + 1)] =
          static_cast<int32_t>(batch.rows == 32 ? batch.depth : batch.depth + i);
    }
    for (int64_t i = 0; i < blocks; ++i) data.push_back(static_cast<int32_t>(i));
    const BufferHandle places = buffer(static_cast<int64_t>(data.size()) * 4);
    need(check_call("clEnqueueWriteBuffer",
                    api().EnqueueWriteBuffer(queue_, places.get(), CL_TRUE, 0, data.size() * 4,
                                             data.data(), 0, nullptr, nullptr)));
    const cl_kernel kernel = need(kernels_.attention(dim, device::KvType::kF32));
    Arguments arguments(kernel);
    arguments.buffer(x.get()).place(0).count(heads * dim);
    arguments.buffer(kv.get())
        .place(0)
        .place(static_cast<uint64_t>(2 * head_floats))
        .place(static_cast<uint64_t>(head_floats));
    arguments.buffer(places.get()).count(0);
    arguments.buffer(y.get()).place(0).count(heads * dim);
    arguments.count(0).count(4).value(0.088f).count(batch.rows).count(heads);
    arguments.buffer(y.get()).count(1);
    LaunchSize size;
    size.global = {static_cast<size_t>(heads * 256), static_cast<size_t>(batch.rows)};
    size.local = {256, 1};
    const double us = 1e6 * time(8, [&](int) { need(launch(queue_, arguments, size)); });
    std::printf("  %lld row(s) at depth %lld: %.1f us\n", static_cast<long long>(batch.rows),
                static_cast<long long>(batch.depth), us);
  }
}

void conformance(const std::string& device_name) {
  OpenClOptions options;
  options.instance = device_name;
  const auto device = need(open(options));
  int ran = 0;
  int failed = 0;
  int not_run = 0;
  const TimePoint start = system_clock().now();
  for (const std::string& group : device::conformance::groups()) {
    for (const auto& c : device::conformance::cases_of(group, device->info())) {
      const auto outcome = run_case(*device, c);
      if (outcome && !outcome->not_run.empty()) {
        ++not_run;
        continue;
      }
      ++ran;
      if (outcome && outcome->passed()) continue;
      ++failed;
      const std::string why = !outcome ? outcome.error().message
                                       : fmt::format("NMSE {} at {}, bound {}", outcome->nmse,
                                                     outcome->place, outcome->bound);
      std::printf("  FAILED %s %s: %s\n", group.c_str(), c.name.c_str(), why.c_str());
      if (device->lost()) return;
    }
  }
  std::printf("\nconformance: %d of %d cases within their bounds, %d not computed, %.1f s\n",
              ran - failed, ran, not_run, to_seconds(system_clock().now() - start));
}

// Tokens per second through the executor, one sequence and `batch` of them.
void whole_model(const std::string& device_name, const std::string& path) {
  const auto model = need(model::Model::load(path));
  const graph::Graph graph = need(graph::build(model));
  OpenClOptions options;
  options.instance = device_name;
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(need(open(options)));
  constexpr int64_t kBatch = 32;
  constexpr int64_t kPrompt = 512;
  constexpr int kTokens = 64;
  device::KvLayout layout;
  layout.n_layers = graph.n_layers;
  layout.n_kv_heads = graph.n_kv_heads;
  layout.head_dim = graph.head_dim;
  layout.n_blocks = (kPrompt + 128) / 32 + kBatch * 4;
  device::SharedPool pool;
  runtime::KvCache cache = need(runtime::KvCache::create(layout, kPrompt + 128, pool));
  const TimePoint begin = system_clock().now();
  const auto executor = need(runtime::Executor::create(
      graph, plan::single_device_plan(graph, devices[0]->info().name, kPrompt, "f32"), devices,
      pool, cache, {.max_logit_rows = kBatch}));
  std::printf("\n%s: compiled and uploaded in %.1f s, %.2f GB\n", path.c_str(),
              to_seconds(system_clock().now() - begin),
              static_cast<double>(devices[0]->stats().own_bytes) / 1e9);
  const std::vector<model::TokenId> tokens(kPrompt, 1);
  const std::span<const model::TokenId> prompt = tokens;
  const runtime::SequenceId one = cache.new_sequence();
  const auto seconds_of = [&](const std::function<void()>& body) {
    const TimePoint start = system_clock().now();
    body();
    return to_seconds(system_clock().now() - start);
  };
  const auto forward = [&](const runtime::Batch& batch) { need(executor->forward(batch)); };
  double prefill = 1e30;
  for (int i = 0; i < 4; ++i) {
    cache.truncate(one, 0);
    prefill = std::min(prefill, seconds_of([&] {
                         forward({{{one, prompt, runtime::WantLogits::kLast}}});
                       }));
  }
  const double flops = 2.0 * static_cast<double>(executor->work(kPrompt, 0).macs);
  std::printf("prefill %lld: %.1f ms, %.0f tok/s, %.1f TFLOPS\n", static_cast<long long>(kPrompt),
              prefill * 1e3, kPrompt / prefill, flops / prefill * 1e-12);
  std::vector<double> times;
  executor->reset_work();
  for (int i = 0; i < kTokens; ++i) {
    times.push_back(seconds_of([&] {
      forward({{{one, prompt.first(1), runtime::WantLogits::kLast}}});
    }));
  }
  std::sort(times.begin(), times.end());
  const double token = times[times.size() / 2];
  const runtime::Work work = executor->work(1, kPrompt);
  std::printf("decode at depth %lld: median %.3f ms (least %.3f), %.1f tok/s, %.0f GB/s\n",
              static_cast<long long>(kPrompt), token * 1e3, times.front() * 1e3, 1 / token,
              static_cast<double>(work.weight_bytes + work.kv_bytes) / token * 1e-9);
  cache.release(one);
  std::vector<runtime::SequenceId> many;
  for (int64_t i = 0; i < kBatch; ++i) many.push_back(cache.new_sequence());
  times.clear();
  for (int i = 0; i < 16; ++i) {
    runtime::Batch batch;
    for (const runtime::SequenceId sequence : many) {
      batch.items.push_back({sequence, prompt.first(1), runtime::WantLogits::kLast});
    }
    times.push_back(seconds_of([&] { forward(batch); }));
  }
  std::sort(times.begin(), times.end());
  const double step = times[times.size() / 2];
  std::printf("decode of %lld sequences: median %.3f ms, %.1f tok/s, %.2f times one\n",
              static_cast<long long>(kBatch), step * 1e3, kBatch / step, kBatch * token / step);
  const device::DeviceStats stats = devices[0]->stats();
  std::printf("copies %lld, %.1f MB\n", static_cast<long long>(stats.copies),
              static_cast<double>(stats.copy_bytes) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<std::string> words;
  bool small = false;
  bool check = true;
  bool tiles = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--small") {
      small = true;
    } else if (word == "--skip-conformance") {
      check = false;
    } else if (word == "--skip-tiles") {
      tiles = false;
    } else {
      words.push_back(word);
    }
  }
  if (words.empty() || words.size() > 2) {
    fail("usage: opencl_bench DEVICE [MODEL] [--small] [--skip-tiles] [--skip-conformance]");
  }
  for (const std::string& line : need(list_devices())) std::printf("%s\n", line.c_str());
  {
    Bench bench(words[0], small);
    bench.facts();
    bench.launches();
    bench.stream();
    bench.one_products();
    if (tiles) {
      bench.few_products(1);
      bench.few_products(4);
      bench.few_products(32);
      bench.many_products(32);
      if (!small) bench.many_products(512);
    }
    bench.attention();
  }
  if (check) conformance(words[0]);
  if (words.size() == 2) whole_model(words[0], words[1]);
  return 0;
}
