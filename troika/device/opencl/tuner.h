// Chooses the tiles of a GPU's product kernels by trying them, once for each device, driver and
// weight type; what it found is kept on disk.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "troika/device/opencl/device_session.h"
#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/product_launch.h"

namespace troika::device::opencl {

// What may be chosen from, for products of one row and of more.
const std::vector<FewShape>& one_row_tiles();
const std::vector<FewShape>& few_row_tiles();
const std::vector<ManyShape>& many_row_tiles();

template <class Shape>
bool is_among(const std::vector<Shape>& shapes, const Shape& shape) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

// One thread at a time. Borrows all that it is given.
class Tuner {
 public:
  // `cache_dir` may be empty or unusable: then each process tries again.
  Tuner(const Session& session, KernelSet& kernels, std::string cache_dir)
      : session_(session), kernels_(kernels), cache_dir_(std::move(cache_dir)) {}

  // Sets the tiles for a type on products like this one, unless that was done. Tries nothing for
  // products that are too small to tell tiles apart. A tile that the device refuses is passed over.
  Status tune(model::TensorType type, int64_t n, int64_t k);
  // The same for a product of one row through matrix units, and for one of up to `rows` rows; none
  // is set where results are not those of the other kernels.
  Status tune_one(const KernelSet::OneProduct& product);
  Status tune_rows(const KernelSet::OneProduct& product, int64_t rows);

 private:
  std::string stamp(std::string_view of) const;
  std::string path(std::string_view of) const;
  bool load(model::TensorType type);
  void store(model::TensorType type, const TileChoice& choice) const;
  // What was kept under this name; empty if nothing was, or by another device or driver.
  std::string kept_text(std::string_view of) const;
  void keep(std::string_view of, const std::string& text) const;
  Result<TileChoice> choose(model::TensorType type, int64_t n, int64_t k);

  const Session& session_;
  KernelSet& kernels_;
  const std::string cache_dir_;
  std::vector<model::TensorType> done_;
  std::vector<std::pair<KernelSet::OneProduct, int64_t>> rows_done_;
};

}  // namespace troika::device::opencl
