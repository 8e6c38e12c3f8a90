#include "bench/opencl_session.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "troika/base/clock.h"

namespace troika::bench {
namespace {

constexpr std::string_view kStreamSource = R"(
__kernel void nothing(__global float *x) { if (get_global_id(0) == ~0u) x[0] = 0.0f; }
__kernel void read(__global const float4 *x, __global float *y, uint n) {
  float4 sum = (float4)0.0f;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
  if (sum.x + sum.y + sum.z + sum.w == 12345.0f) y[0] = sum.x;
}
)";

}  // namespace

double Bench::time(int repeats, const std::function<void(int)>& queue_one) const {
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

void Bench::write(const Piece& to, const void* data, size_t bytes) const {
  need(check_call(
      "clEnqueueWriteBuffer",
      api().EnqueueWriteBuffer(queue_, to.get(), CL_TRUE, static_cast<size_t>(to.begin()), bytes,
                               data, 0, nullptr, nullptr)));
}

Piece Bench::buffer(int64_t bytes) {
  Piece made = need(arena_.take(bytes));
  // Small positive numbers in whatever format they are read.
  const std::vector<char> filling(static_cast<size_t>(bytes), '\x2a');
  write(made, filling.data(), filling.size());
  return made;
}

// Any quants, and scales between a hundredth and a fiftieth.
Piece Bench::random_weights(int64_t scales, int64_t bytes) {
  Piece made = need(arena_.take(bytes));
  std::mt19937 random(1);
  std::vector<uint16_t> halves(static_cast<size_t>(bytes / 2));
  for (uint16_t& half : halves) half = static_cast<uint16_t>(random());
  for (size_t i = static_cast<size_t>(scales / 2); i < halves.size(); ++i) {
    halves[i] = static_cast<uint16_t>(0x2000 + halves[i] % 1024);
  }
  write(made, halves.data(), halves.size() * 2);
  return made;
}

Piece Bench::random_floats(int64_t count) {
  Piece made = need(arena_.take(count * 4));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  write(made, values.data(), values.size() * 4);
  return made;
}

std::vector<float> Bench::read_floats(const Piece& from, int64_t count) const {
  std::vector<float> values(static_cast<size_t>(count));
  need(check_call(
      "clEnqueueReadBuffer",
      api().EnqueueReadBuffer(queue_, from.get(), CL_TRUE, static_cast<size_t>(from.begin()),
                              values.size() * 4, values.data(), 0, nullptr, nullptr)));
  return values;
}

DeviceWeight Bench::weight(int64_t n, int64_t k) {
  DeviceWeight made;
  made.n = n;
  made.k = k;
  const int64_t scales = (n * k / 2 + 255) / 256 * 256;
  made.own_bytes = scales + n * k / 32 * 2;
  made.memory = random_weights(scales, made.own_bytes);
  made.begin = made.memory.begin();
  made.scales = made.begin + scales;
  return made;
}

Bench::LaunchCosts Bench::launch_costs() {
  const Piece x = buffer(64);
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
  LaunchCosts costs;
  costs.submit = to_us(system_clock().now() - start) / many;
  need(check_call("clFinish", api().Finish(queue_)));
  costs.queued = time(many, one) * 1e6;
  costs.finished = time(1, one) * 1e6;
  costs.finish = time(1, [](int) {}) * 1e6;
  costs.flushed = time(many,
                       [&](int i) {
                         one(i);
                         api().Flush(queue_);
                       }) *
                  1e6;
  costs.marked = time(many,
                      [&](int i) {
                        one(i);
                        cl_event event = nullptr;
                        api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event);
                        api().ReleaseEvent(event);
                      }) *
                 1e6;
  return costs;
}

void Bench::launches() {
  const LaunchCosts costs = launch_costs();
  std::printf(
      "launch: submit %.2f us, queued one after the other %.2f us each, with a flush each %.2f us, "
      "with a marker each %.2f us; launch and clFinish %.2f us, clFinish alone %.2f us\n",
      costs.submit, costs.queued, costs.flushed, costs.marked, costs.finished, costs.finish);
}

double Bench::read_rate(const Piece& from, int64_t bytes) {
  const cl_kernel kernel = need(programs_.kernel({{kStreamSource}, ""}, "read"));
  const Piece y = buffer(64);
  Arguments arguments(kernel);
  arguments.buffer(from.get()).buffer(y.get()).count(bytes / 16);
  LaunchSize size;
  size.global = {static_cast<size_t>(facts().units * 2048), 1};
  size.local = {256, 1};
  const double seconds = time(10, [&](int) { need(launch(queue_, arguments, size)); });
  return static_cast<double>(bytes) / seconds / 1e9;
}

void Bench::stream() {
  const int64_t most = small_ ? int64_t{128} << 20 : int64_t{4} << 30;
  const int64_t largest = std::min(most, session_.facts.largest_buffer / 2);
  const Piece x = buffer(largest);
  std::printf("read:");
  for (int64_t bytes = int64_t{1} << 20; bytes <= largest; bytes *= 4) {
    read_gbps_ = read_rate(x, bytes);
    std::printf(" %lld MiB %.1f us %.0f GB/s;", static_cast<long long>(bytes >> 20),
                static_cast<double>(bytes) / read_gbps_ / 1e3, read_gbps_);
  }
  std::vector<float> logits(static_cast<size_t>(scaled(128256)));
  const double back = time(1, [&](int) {
    api().EnqueueReadBuffer(queue_, x.get(), CL_TRUE, 0, logits.size() * sizeof(float),
                            logits.data(), 0, nullptr, nullptr);
  });
  std::printf(" a row of logits to the host %.1f us\n", back * 1e6);
}

}  // namespace troika::bench
