// Products with every tile size against their roofline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/opencl_session.h"

namespace troika::bench {
namespace {

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

// The mean square of a difference as a part of that of what was expected.
double nmse(const std::vector<float>& found, const std::vector<float>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    error += std::pow(double{found[i]} - double{expected[i]}, 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return error / norm;
}

std::string verdict(double error) {
  return error <= 1e-10 ? "" : fmt::format(" WRONG ({:.0e})", error);
}

}  // namespace

std::vector<Bench::Shape> Bench::shapes() const {
  const int64_t hidden = scaled(4096);
  const int64_t kv = scaled(1024);
  const int64_t ffn = scaled(14336);
  return {{"norm q k v", {hidden, kv, kv}, hidden, false, true, false, 32},
          {"o + x", {hidden}, hidden, false, false, true, 32},
          {"norm gate up silu", {ffn, ffn}, hidden, true, true, false, 32},
          {"down + x", {hidden}, ffn, false, false, true, 32},
          {"norm head", {scaled(128256)}, hidden, false, true, false, 1}};
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
  work.gain.memory = buffer(shape.inputs * 4);
  work.gain.begin = work.gain.memory.begin();
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
  task.x = view_of(work.x, shape.inputs);
  View y = view_of(work.y, 0);
  for (const DeviceWeight& one : weights) {
    y.stride = one.n;
    task.outs.push_back({&one, y});
    y.begin += static_cast<uint64_t>(rows * one.n);
  }
  task.gated = shape.gated;
  task.gain = shape.norm ? &work.gain : nullptr;
  task.eps = 1e-5f;
  task.has_add = shape.add;
  task.add = view_of(work.add, weights[0].n);
  return task;
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
      const double us = 1e6 * time(32, [&](int i) {
                          need(launch_one(queue_, kernels_, tile, task_of(shape, work, 1, i)));
                        });
      line += fmt::format(" {}x{}x{} {:.1f}{}", tile.warps, tile.groups, tile.ahead, us,
                          verdict(nmse(found, expected)));
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

// Products of a few rows through matrix units, against the other kernels.
void Bench::row_products(int64_t rows) {
  if (!session_.facts.matrix_units) return;
  std::printf("\nproducts of %lld rows, Q4_0, matrix units: us (warps of a group)\n",
              static_cast<long long>(rows));
  double total = 0;
  for (const Shape& whole : shapes()) {
    Shape shape = whole;
    shape.gated = false;
    Work work = prepare(shape, rows);
    for (auto& copy : work.weights) {
      for (DeviceWeight& one : copy) one.tiled = true;
    }
    const Piece limbs = buffer(limb_floats(rows, shape.inputs) * 4);
    const ProductTask task = task_of(shape, work, rows, 0);
    const int64_t count = rows * task.outs[0].weight->n;
    need(launch_few(queue_, kernels_, kernels_.few_shape(task.type, rows, false), task));
    const std::vector<float> expected = read_floats(work.y, count);
    double best = 1e30;
    std::string line;
    for (const RowsShape& tile : rows_shapes(rows)) {
      need(launch_rows(queue_, kernels_, tile, task, limbs.place()));
      const std::vector<float> found = read_floats(work.y, count);
      const double us =
          1e6 * time(32, [&](int i) {
            need(launch_rows(queue_, kernels_, tile, task_of(shape, work, rows, i), limbs.place()));
          });
      line += fmt::format(" {} {:.1f}{}", tile.warps, us, verdict(nmse(found, expected)));
      best = std::min(best, us);
    }
    total += best * shape.per_token;
    std::printf("%-18s %6.1f MB best %.1f us = %.0f GB/s;%s\n", shape.name,
                static_cast<double>(work.bytes) / 1e6, best,
                static_cast<double>(work.bytes) / best / 1e3, line.c_str());
  }
  std::printf("products of a pass: best %.0f us\n", total);
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

}  // namespace troika::bench
