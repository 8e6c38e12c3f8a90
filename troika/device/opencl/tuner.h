// Chooses the tiles of a GPU's product kernels by trying them, once for each device, driver and
// weight type; what it found is kept on disk.
#pragma once

#include <string>
#include <vector>

#include "troika/device/opencl/device_session.h"
#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/product_launch.h"

namespace troika::device::opencl {

// What may be chosen from, for products of one row and of more.
const std::vector<FewShape>& one_row_tiles();
const std::vector<FewShape>& few_row_tiles();
const std::vector<ManyShape>& many_row_tiles();

// One thread at a time. Borrows all that it is given.
class Tuner {
 public:
  // `cache_dir` may be empty or unusable: then each process tries again.
  Tuner(const Session& session, KernelSet& kernels, std::string cache_dir)
      : session_(session), kernels_(kernels), cache_dir_(std::move(cache_dir)) {}

  // Sets the tiles for a type on products like this one, unless that was done. Tries nothing for
  // products that are too small to tell tiles apart. A tile that the device refuses is passed over.
  Status tune(model::TensorType type, int64_t n, int64_t k);
  // The same for a product of one row through matrix units.
  Status tune_one(const KernelSet::OneProduct& product);

 private:
  struct Trial;

  std::string stamp(std::string_view of) const;
  std::string path(std::string_view of) const;
  bool load(model::TensorType type);
  void store(model::TensorType type, const TileChoice& choice) const;
  void keep(std::string_view of, const std::string& text) const;
  Result<TileChoice> choose(model::TensorType type, int64_t n, int64_t k);

  const Session& session_;
  KernelSet& kernels_;
  const std::string cache_dir_;
  std::vector<model::TensorType> done_;
};

}  // namespace troika::device::opencl
