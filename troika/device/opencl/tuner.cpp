#include "troika/device/opencl/tuner.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "troika/base/write_file.h"
#include "troika/device/opencl/trial.h"

namespace troika::device::opencl {
namespace {

// Smaller products take hardly longer than their launch.
constexpr int64_t kLeastWeights = int64_t{1} << 22;
constexpr int kLaunches = 24;
constexpr int kFormat = 2;

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

Result<TileChoice> Tuner::choose(model::TensorType type, int64_t n, int64_t k) {
  Trial trial(session_);
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
  std::istringstream file(kept_text(model::traits(type).name));
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
  std::string text;
  for (const FewShape& shape : {choice.one, choice.one_gated, choice.few}) {
    text += fmt::format("{} {} {}\n", shape.outputs, shape.rows, shape.group);
  }
  const ManyShape& many = choice.many;
  text += fmt::format("{} {} {} {}\n", many.tile_m, many.tile_n, many.item_m, many.item_n);
  keep(model::traits(type).name, text);
}

std::string Tuner::kept_text(std::string_view of) const {
  if (cache_dir_.empty()) return {};
  std::ifstream file(path(of));
  std::string line;
  if (!std::getline(file, line) || line != stamp(of)) return {};
  std::ostringstream rest;
  rest << file.rdbuf();
  return rest.str();
}

void Tuner::keep(std::string_view of, const std::string& text) const {
  if (cache_dir_.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(cache_dir_, failed);
  if (!failed)
    static_cast<void>(write_file("chosen tiles", path(of), fmt::format("{}\n{}", stamp(of), text)));
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

}  // namespace troika::device::opencl
