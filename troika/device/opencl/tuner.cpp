#include "troika/device/opencl/tuner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "troika/base/clock.h"
#include "troika/base/write_file.h"

namespace troika::device::opencl {
namespace {

// Smaller products take hardly longer than their launch.
constexpr int64_t kLeastWeights = int64_t{1} << 22;
// Larger than any cache, so that each launch reads its weights from memory.
constexpr int64_t kColdBytes = int64_t{256} << 20;
constexpr int kLaunches = 24;
constexpr int kTries = 3;
constexpr int kFormat = 1;

template <class Shape>
bool is_among(const std::vector<Shape>& shapes, const Shape& shape) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

}  // namespace

const std::vector<FewShape>& one_row_tiles() {
  static const std::vector<FewShape> tiles = {{8, 1, 128}, {4, 1, 128}, {4, 1, 64},
                                              {2, 1, 128}, {8, 1, 64},  {4, 1, 256}};
  return tiles;
}

const std::vector<FewShape>& few_row_tiles() {
  static const std::vector<FewShape> tiles = {{4, 4, 128}, {2, 4, 128}, {4, 8, 128}, {8, 4, 64}};
  return tiles;
}

const std::vector<ManyShape>& many_row_tiles() {
  static const std::vector<ManyShape> tiles = {
      {128, 128, 8, 8}, {64, 64, 4, 8}, {64, 128, 8, 8}, {128, 64, 8, 8}, {64, 64, 8, 8}};
  return tiles;
}

// Buffers for products of up to kManyRows rows, and the time of one of them.
struct Tuner::Trial {
  static constexpr int64_t kFewRows = 8;
  static constexpr int64_t kManyRows = 512;

  const Session& session;
  std::vector<DeviceWeight> weights;
  DeviceWeight gain;
  BufferHandle x;
  BufferHandle y;

  // Zeros, which take as long as other numbers.
  Result<BufferHandle> buffer(int64_t bytes) const {
    cl_int code = CL_SUCCESS;
    BufferHandle made(api().CreateBuffer(session.context.get(), CL_MEM_READ_WRITE,
                                         static_cast<size_t>(bytes), nullptr, &code));
    RETURN_IF_ERROR(check_call("clCreateBuffer", code));
    constexpr int64_t kPiece = int64_t{1} << 20;
    const std::vector<char> zeros(static_cast<size_t>(std::min(bytes, kPiece)));
    for (int64_t at = 0; at < bytes; at += kPiece) {
      const auto size = static_cast<size_t>(std::min(kPiece, bytes - at));
      RETURN_IF_ERROR(check_call("clEnqueueWriteBuffer",
                                 api().EnqueueWriteBuffer(session.queue.get(), made.get(), CL_TRUE,
                                                          static_cast<size_t>(at), size,
                                                          zeros.data(), 0, nullptr, nullptr)));
    }
    return made;
  }

  Status prepare(model::TensorType type, int64_t n, int64_t k) {
    const int64_t bytes = packed_bytes(type, n, k);
    for (int64_t held = 0; held < kColdBytes; held += bytes) {
      DeviceWeight& weight = weights.emplace_back();
      ASSIGN_OR_RETURN(weight.buffer, buffer(bytes));
      weight.scales = packed_scales(type, n, k);
      weight.n = n;
      weight.k = k;
    }
    ASSIGN_OR_RETURN(gain.buffer, buffer(k * 4));
    ASSIGN_OR_RETURN(x, buffer(kManyRows * k * 4));
    ASSIGN_OR_RETURN(y, buffer(kManyRows * n * 4));
    return {};
  }

  ProductTask task(model::TensorType type, int64_t rows, int index, bool gated) const {
    const auto at = [&](int i) { return &weights[static_cast<size_t>(i) % weights.size()]; };
    ProductTask task;
    task.type = type;
    task.rows = rows;
    task.x = {x.get(), 0, weights[0].k};
    task.outs.push_back({at(index), {y.get(), 0, weights[0].n}});
    if (gated) {
      task.outs.push_back({at(index + 1), {y.get(), 0, weights[0].n}});
      task.gain = &gain;
      task.eps = 1e-5f;
      task.gated = true;
    }
    return task;
  }

  // The least time of a row of launches; infinite if the device refuses one.
  template <class Launch>
  double time(int launches, const Launch& launch_one) const {
    double best = std::numeric_limits<double>::infinity();
    for (int attempt = 0; attempt <= kTries; ++attempt) {
      const TimePoint start = system_clock().now();
      for (int i = 0; i < launches; ++i) {
        if (!launch_one(2 * i)) return std::numeric_limits<double>::infinity();
      }
      if (api().Finish(session.queue.get()) != CL_SUCCESS) {
        return std::numeric_limits<double>::infinity();
      }
      // The first may have compiled.
      if (attempt > 0) best = std::min(best, to_seconds(system_clock().now() - start));
    }
    return best;
  }
};

Result<TileChoice> Tuner::choose(model::TensorType type, int64_t n, int64_t k) {
  Trial trial{.session = session_, .weights = {}, .gain = {}, .x = {}, .y = {}};
  RETURN_IF_ERROR(trial.prepare(type, n, k));
  const cl_command_queue queue = session_.queue.get();
  TileChoice choice;
  const auto few = [&](const std::vector<FewShape>& tiles, int64_t rows, bool gated,
                       FewShape& chosen) {
    double best = std::numeric_limits<double>::infinity();
    for (const FewShape& tile : tiles) {
      const double seconds = trial.time(kLaunches, [&](int i) {
        return launch_few(queue, kernels_, tile, trial.task(type, rows, i, gated));
      });
      if (seconds >= best) continue;
      best = seconds;
      chosen = tile;
    }
  };
  few(one_row_tiles(), 1, false, choice.one);
  few(one_row_tiles(), 1, true, choice.one_gated);
  few(few_row_tiles(), Trial::kFewRows, false, choice.few);
  double best = std::numeric_limits<double>::infinity();
  for (const ManyShape& tile : many_row_tiles()) {
    const double seconds = trial.time(2, [&](int i) {
      return launch_many(queue, kernels_, tile, trial.task(type, Trial::kManyRows, i, false));
    });
    if (seconds >= best) continue;
    best = seconds;
    choice.many = tile;
  }
  return choice;
}

std::string Tuner::stamp(std::string_view of) const {
  const DeviceFacts& facts = session_.facts;
  return fmt::format("{} | {} | {} | {} | {} | {}", kFormat, facts.platform_name, facts.name,
                     facts.driver, facts.version, of);
}

std::string Tuner::path(std::string_view of) const {
  return fmt::format("{}/opencl-tiles-{:016x}.txt", cache_dir_,
                     std::hash<std::string>()(stamp(of)));
}

// Only what this program would choose itself is believed.
bool Tuner::load(model::TensorType type) {
  if (cache_dir_.empty()) return false;
  const std::string_view name = model::traits(type).name;
  std::ifstream file(path(name));
  std::string line;
  if (!std::getline(file, line) || line != stamp(name)) return false;
  TileChoice choice;
  for (FewShape* shape : {&choice.one, &choice.one_gated, &choice.few}) {
    file >> shape->outputs >> shape->rows >> shape->group;
  }
  ManyShape& many = choice.many;
  file >> many.tile_m >> many.tile_n >> many.item_m >> many.item_n;
  const bool known = file && is_among(one_row_tiles(), choice.one) &&
                     is_among(one_row_tiles(), choice.one_gated) &&
                     is_among(few_row_tiles(), choice.few) && is_among(many_row_tiles(), many);
  if (known) kernels_.set_tiles(type, choice);
  return known;
}

void Tuner::store(model::TensorType type, const TileChoice& choice) const {
  if (cache_dir_.empty()) return;
  const std::string_view name = model::traits(type).name;
  std::string text = stamp(name) + '\n';
  for (const FewShape& shape : {choice.one, choice.one_gated, choice.few}) {
    text += fmt::format("{} {} {}\n", shape.outputs, shape.rows, shape.group);
  }
  const ManyShape& many = choice.many;
  text += fmt::format("{} {} {} {}\n", many.tile_m, many.tile_n, many.item_m, many.item_n);
  keep(name, text);
}

void Tuner::keep(std::string_view of, const std::string& text) const {
  std::error_code failed;
  std::filesystem::create_directories(cache_dir_, failed);
  if (!failed) static_cast<void>(write_file("chosen tiles", path(of), text));
}

Status Tuner::tune(model::TensorType type, int64_t n, int64_t k) {
  if (n * k < kLeastWeights) return {};
  if (std::find(done_.begin(), done_.end(), type) != done_.end()) return {};
  done_.push_back(type);
  if (load(type)) return {};
  ASSIGN_OR_RETURN(const TileChoice choice, choose(type, n, k));
  kernels_.set_tiles(type, choice);
  store(type, choice);
  return {};
}

Status Tuner::tune_one(const KernelSet::OneProduct& product) {
  if (kernels_.one_shape(product)) return {};
  const std::vector<OneShape> shapes = one_shapes(product.inputs, session_.facts.local_bytes);
  if (shapes.empty()) return {};
  const std::string name =
      fmt::format("one row {} {} {}", product.outputs, product.inputs, int{product.gated});
  OneShape best = shapes.front();
  std::ifstream file(path(name));
  std::string line;
  OneShape kept;
  if (!cache_dir_.empty() && std::getline(file, line) && line == stamp(name) &&
      file >> kept.warps >> kept.groups >> kept.ahead && is_among(shapes, kept)) {
    best = kept;
  } else {
    Trial trial{.session = session_, .weights = {}, .gain = {}, .x = {}, .y = {}};
    const int64_t matrices = product.gated ? 2 : 1;
    RETURN_IF_ERROR(
        trial.prepare(model::TensorType::kQ4_0, product.outputs / matrices, product.inputs));
    for (DeviceWeight& weight : trial.weights) weight.tiled = true;
    double least = std::numeric_limits<double>::infinity();
    for (const OneShape& shape : shapes) {
      const double seconds = trial.time(kLaunches, [&](int i) {
        return launch_one(session_.queue.get(), kernels_, shape,
                          trial.task(model::TensorType::kQ4_0, 1, i, product.gated));
      });
      if (seconds >= least) continue;
      least = seconds;
      best = shape;
    }
    // A device whose compiler refuses them all has its other kernels.
    if (least == std::numeric_limits<double>::infinity()) return {};
    if (!cache_dir_.empty()) {
      keep(name, fmt::format("{}\n{} {} {}\n", stamp(name), best.warps, best.groups, best.ahead));
    }
  }
  kernels_.set_one_shape(product, best);
  return {};
}

}  // namespace troika::device::opencl
