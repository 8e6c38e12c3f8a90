// An OpenCL device without the rest of the program, for benchmarks of its kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/device/opencl/arena.h"
#include "troika/device/opencl/device_session.h"
#include "troika/device/opencl/product_launch.h"
#include "troika/device/opencl/programs.h"

namespace troika::bench {

using namespace troika::device::opencl;

// From a dependent streaming kernel on an NVIDIA H200: what one launch costs on top of its bytes.
constexpr double kLaunchUs = 3.3;

// Floats from the beginning of a piece on.
inline View view_of(const Piece& piece, int64_t stride) {
  return {piece.get(), piece.place().floats(), stride};
}

class Bench {
 public:
  // `gpu_kernels`: even on a processor.
  Bench(const std::string& device, bool small, bool gpu_kernels)
      : small_(small),
        session_(need(open_session([&] {
          OpenClOptions options;
          options.instance = device;
          options.gpu_kernels = gpu_kernels;
          return options;
        }()))),
        programs_(session_.context.get(), session_.facts, ""),
        kernels_(session_.device_class, programs_),
        arena_(session_.context.get(), session_.facts.largest_buffer),
        queue_(session_.queue.get()) {}

  const DeviceFacts& facts() const { return session_.facts; }
  KernelSet& kernels() { return kernels_; }
  cl_command_queue queue() const { return queue_; }

  // Microseconds: of queueing a kernel that does nothing; of each of many such kernels, with a
  // flush or a marker behind each; of one and clFinish; of clFinish alone.
  struct LaunchCosts {
    double submit = 0;
    double queued = 0;
    double flushed = 0;
    double marked = 0;
    double finished = 0;
    double finish = 0;
  };
  LaunchCosts launch_costs();
  // GB/s of a kernel that reads so many bytes of a buffer.
  double read_rate(const Piece& from, int64_t bytes);

  // Seconds of one of `repeats` queued one after the other; the best of a few tries.
  double time(int repeats, const std::function<void(int)>& queue_one) const;
  // Small positive numbers in whatever format they are read.
  Piece buffer(int64_t bytes);

  // These print.
  void launches();
  void stream();
  void one_products();
  void row_products(int64_t rows);  // through matrix units
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

  std::vector<Shape> shapes() const;
  void write(const Piece& to, const void* data, size_t bytes) const;
  Piece random_weights(int64_t scales, int64_t bytes);
  Piece random_floats(int64_t count);
  std::vector<float> read_floats(const Piece& from, int64_t count) const;
  DeviceWeight weight(int64_t n, int64_t k);

  struct Work {
    std::vector<std::vector<DeviceWeight>> weights;  // copies, each larger than caches together
    DeviceWeight gain;
    Piece x;
    Piece y;
    Piece add;
    int64_t bytes = 0;
    int64_t macs = 0;
  };
  Work prepare(const Shape& shape, int64_t rows);
  ProductTask task_of(const Shape& shape, const Work& work, int64_t rows, int copy) const;

  const bool small_;
  Session session_;
  Programs programs_;
  KernelSet kernels_;
  Arena arena_;
  cl_command_queue queue_;
  double read_gbps_ = 0;
};

}  // namespace troika::bench
