#include "troika/device/opencl/trial.h"

#include <algorithm>
#include <random>

#include "troika/base/clock.h"

namespace troika::device::opencl {
namespace {

// Larger than any cache.
constexpr int64_t kColdBytes = int64_t{256} << 20;
constexpr int kTries = 3;
// Of the difference of two orders of summing in FP32, with room.
constexpr double kSameNmse = 1e-9;

}  // namespace

Status Trial::write(const Piece& to, const void* data, size_t bytes) const {
  return check_call(
      "clEnqueueWriteBuffer",
      api().EnqueueWriteBuffer(session_.queue.get(), to.get(), CL_TRUE,
                               static_cast<size_t>(to.begin()), bytes, data, 0, nullptr, nullptr));
}

Result<Piece> Trial::zeros(int64_t bytes) {
  ASSIGN_OR_RETURN(Piece made, arena_.take(bytes));
  constexpr int64_t kPiece = int64_t{1} << 20;
  const std::vector<char> nothing(static_cast<size_t>(std::min(bytes, kPiece)));
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const auto size = static_cast<size_t>(std::min(kPiece, bytes - at));
    RETURN_IF_ERROR(
        check_call("clEnqueueWriteBuffer",
                   api().EnqueueWriteBuffer(session_.queue.get(), made.get(), CL_TRUE,
                                            static_cast<size_t>(made.begin() + at), size,
                                            nothing.data(), 0, nullptr, nullptr)));
  }
  return made;
}

Status Trial::prepare(model::TensorType type, int64_t n, int64_t k, bool tiled) {
  const int64_t bytes = packed_bytes(type, n, k);
  const int64_t cold = session_.facts.is_processor() ? 1 : kColdBytes;
  for (int64_t held = 0; held < cold; held += bytes) {
    DeviceWeight& weight = weights_.emplace_back();
    ASSIGN_OR_RETURN(weight.memory, zeros(bytes));
    weight.begin = weight.memory.begin();
    weight.scales = weight.begin + packed_scales(type, n, k);
    weight.own_bytes = bytes;
    weight.tiled = tiled;
    weight.n = n;
    weight.k = k;
  }
  ASSIGN_OR_RETURN(gain_.memory, zeros(k * 4));
  gain_.begin = gain_.memory.begin();
  ASSIGN_OR_RETURN(x_, zeros(kManyRows * k * 4));
  ASSIGN_OR_RETURN(y_, zeros(kManyRows * n * 4));
  return {};
}

// Any nibbles, and scales between a hundredth and a fiftieth.
Status Trial::randomize() {
  std::mt19937 random(1);
  for (size_t w = 0; w < std::min<size_t>(2, weights_.size()); ++w) {
    const DeviceWeight& weight = weights_[w];
    std::vector<uint16_t> halves(static_cast<size_t>(weight.own_bytes / 2));
    for (uint16_t& half : halves) half = static_cast<uint16_t>(random());
    for (auto i = static_cast<size_t>((weight.scales - weight.begin) / 2); i < halves.size(); ++i) {
      halves[i] = static_cast<uint16_t>(0x2000 + halves[i] % 1024);
    }
    RETURN_IF_ERROR(write(weight.memory, halves.data(), halves.size() * 2));
  }
  std::normal_distribution<float> normal;
  const int64_t k = weights_[0].k;
  std::vector<float> values(static_cast<size_t>(kMostUnitRows * k));
  for (float& value : values) value = normal(random);
  RETURN_IF_ERROR(write(x_, values.data(), values.size() * 4));
  return write(gain_.memory, values.data(), static_cast<size_t>(k) * 4);
}

ProductTask Trial::task(model::TensorType type, int64_t rows, int index, bool gated) const {
  const auto at = [&](int i) { return &weights_[static_cast<size_t>(i) % weights_.size()]; };
  ProductTask task;
  task.type = type;
  task.rows = rows;
  task.x = view(x_, weights_[0].k);
  task.outs.push_back({at(index), view(y_, weights_[0].n)});
  if (gated) {
    task.outs.push_back({at(index + 1), view(y_, weights_[0].n)});
    task.gated = true;
    return normed(task);
  }
  return task;
}

double Trial::time(int launches, const Launch& launch_one) const {
  double best = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt <= kTries; ++attempt) {
    const TimePoint start = system_clock().now();
    for (int i = 0; i < launches; ++i) {
      if (!launch_one(2 * i)) return std::numeric_limits<double>::infinity();
    }
    if (api().Finish(session_.queue.get()) != CL_SUCCESS) {
      return std::numeric_limits<double>::infinity();
    }
    // The first may have compiled.
    if (attempt > 0) best = std::min(best, to_seconds(system_clock().now() - start));
  }
  return best;
}

Result<std::vector<float>> Trial::outputs(int64_t count, const Launch& launch_one) const {
  std::vector<float> values(static_cast<size_t>(count));
  RETURN_IF_ERROR(write(y_, values.data(), values.size() * 4));
  RETURN_IF_ERROR(launch_one(0));
  RETURN_IF_ERROR(
      check_call("clEnqueueReadBuffer",
                 api().EnqueueReadBuffer(session_.queue.get(), y_.get(), CL_TRUE,
                                         static_cast<size_t>(y_.begin()), values.size() * 4,
                                         values.data(), 0, nullptr, nullptr)));
  return values;
}

bool Trial::agree(int64_t count, const Launch& one, const Launch& other) const {
  const auto first = outputs(count, one);
  const auto second = outputs(count, other);
  if (!first || !second) return false;
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < first->size(); ++i) {
    const double difference = double{(*first)[i]} - double{(*second)[i]};
    error += difference * difference;
    norm += double{(*second)[i]} * double{(*second)[i]};
  }
  return norm > 0 && error <= kSameNmse * norm;
}

}  // namespace troika::device::opencl
