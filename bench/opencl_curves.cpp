// What each OpenCL runtime of this machine is like, as text and as a page of charts:
//   opencl_curves [PAGE.html]
// Speed against size: products of Q4_0 weights of 128 rows and of one, and reading. Cost of
// launches: queueing, queueing with a flush or a marker behind each, a kernel and clFinish,
// clFinish alone.
#include <fmt/format.h>

#include <fstream>
#include <map>

#include "bench/curve_page.h"
#include "bench/opencl_session.h"

namespace {

using namespace troika;
using namespace troika::bench;

// As a device of this class is used.
double product_seconds(Bench& bench, int64_t size, int64_t rows) {
  const bool is_host = bench.kernels().device_class() == DeviceClass::kHost;
  const model::TensorType type = model::TensorType::kQ4_0;
  DeviceWeight weight;
  weight.n = size;
  weight.k = size;
  weight.row_stride = model::row_bytes(type, size);
  weight.scales = packed_scales(type, size, size);
  weight.memory = bench.buffer(packed_bytes(type, size, size));
  weight.begin = weight.memory.begin();
  weight.scales += weight.begin;
  const Piece x = bench.buffer(rows * size * 4);
  const Piece y = bench.buffer(rows * size * 4);
  ProductTask task;
  task.type = type;
  task.rows = rows;
  task.x = view_of(x, size);
  task.outs.push_back({&weight, view_of(y, size)});
  KernelSet& kernels = bench.kernels();
  const auto one = [&](int) {
    if (is_host) {
      need(launch_host(bench.queue(), kernels, task));
    } else if (rows <= kMostFewRows) {
      need(launch_few(bench.queue(), kernels, kernels.few_shape(type, rows, false), task));
    } else {
      need(launch_many(bench.queue(), kernels, kernels.many_shape(type, rows, size), task));
    }
  };
  const double macs = static_cast<double>(size * size * rows);
  return bench.time(macs < 2e7 ? 20 : 2, one);
}

struct Curves {
  std::vector<Curve> many;
  std::vector<Curve> one;
  std::vector<Curve> read;
  std::vector<Curve> launch;
};

void measure(const std::string& index, const std::string& name, Curves& curves) {
  Bench bench(index, true, false);
  const DeviceFacts& facts = bench.facts();
  fmt::print("\n{}, driver {}, {}\n", name, facts.driver, facts.version);
  const int64_t largest = facts.is_processor() ? 2048 : 8192;
  Curve many{name, {}};
  Curve one{name, {}};
  fmt::print("{:>6} {:>22} {:>22}\n", "size", "128 rows, GFLOPS", "1 row, GB/s of weights");
  for (int64_t size = 64; size <= largest; size *= 2) {
    const double flops = 2.0 * 128 * static_cast<double>(size * size);
    const double rate = flops / product_seconds(bench, size, 128) * 1e-9;
    const double bytes = static_cast<double>(packed_bytes(model::TensorType::kQ4_0, size, size));
    const double read = bytes / product_seconds(bench, size, 1) * 1e-9;
    fmt::print("{:>6} {:>22.2f} {:>22.2f}\n", size, rate, read);
    many.points.emplace_back(static_cast<double>(size), rate);
    one.points.emplace_back(static_cast<double>(size), read);
  }
  Curve read{name, {}};
  const int64_t most = facts.is_processor() ? int64_t{128} << 20 : int64_t{2} << 30;
  const Piece from = bench.buffer(std::min(most, facts.largest_buffer / 2));
  fmt::print("{:>6} {:>22}\n", "KiB", "reading, GB/s");
  for (int64_t bytes = int64_t{64} << 10; bytes <= std::min(most, facts.largest_buffer / 2);
       bytes *= 4) {
    const double rate = bench.read_rate(from, bytes);
    fmt::print("{:>6} {:>22.2f}\n", bytes >> 10, rate);
    read.points.emplace_back(static_cast<double>(bytes), rate);
  }
  const Bench::LaunchCosts costs = bench.launch_costs();
  fmt::print(
      "a launch, us: submit {:.2f}, queued {:.2f}, with a flush {:.2f}, with a marker {:.2f}, with "
      "clFinish {:.2f}; clFinish alone {:.2f}\n",
      costs.submit, costs.queued, costs.flushed, costs.marked, costs.finished, costs.finish);
  // Kernels between two waits: what each costs then.
  Curve launch{name, {}};
  for (const int count : {1, 10, 100, 1000}) {
    const double each = (costs.finished - costs.queued) / count + costs.queued;
    launch.points.emplace_back(count, std::max(each, 0.01));
  }
  curves.many.push_back(std::move(many));
  curves.one.push_back(std::move(one));
  curves.read.push_back(std::move(read));
  curves.launch.push_back(std::move(launch));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) fail("usage: opencl_curves [PAGE.html]");
  Curves curves;
  const auto devices = need(find_devices());
  for (size_t i = 0; i < devices.size(); ++i) {
    measure(std::to_string(i),
            fmt::format("opencl:{} {} ({})", i, devices[i].name, devices[i].platform_name), curves);
  }
  if (argc < 2) return 0;
  std::ofstream(argv[1]) << curve_page(
      "OpenCL runtimes: speed against size, and what launches cost",
      "Best of five tries each, measured by opencl_curves. Launches: computed from the cost of a "
      "launch that is waited for and of one of a thousand that are not.",
      {{"Products of 128 rows, Q4_0", "outputs and inputs", "GFLOPS", curves.many},
       {"Products of one row, Q4_0", "outputs and inputs", "GB/s of weights", curves.one},
       {"Reading", "bytes", "GB/s", curves.read},
       {"A launch", "kernels between two waits", "us each", curves.launch}});
  fmt::print("\n{}\n", argv[1]);
  return 0;
}
