// Starts the kernels of a step.
#pragma once

#include "troika/device/device.h"
#include "troika/device/opencl/batch_data.h"
#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/mirrors.h"
#include "troika/device/opencl/product_launch.h"
#include "troika/device/opencl/scratch.h"
#include "troika/device/opencl/steps.h"

namespace troika::device::opencl {

// One task on its way to the queue. Borrows everything.
class StepRunner {
 public:
  StepRunner(cl_command_queue queue, KernelSet& kernels, Mirrors& mirrors, Scratch& scratch,
             const BatchData& batch, const Program& program, const Bindings& bindings)
      : queue_(queue),
        kernels_(kernels),
        mirrors_(mirrors),
        scratch_(scratch),
        batch_data_(batch),
        program_(program),
        graph_(*program.graph),
        bindings_(bindings),
        batch_(*bindings.batch) {}

  Status run(const Step& step);

 private:
  Result<View> view(TensorIndex index);
  int64_t width(TensorIndex index) const;
  int64_t rows(const Step& step) const { return batch_.row_count(step.rows); }
  // A kernel of rows.cl that is done with `items` work-items for each row.
  Status launch_items(Arguments& arguments, int64_t items, int64_t rows);

  Status run_other(const Step& step);
  Status embed(const Step& step);
  Status norm(const graph::Op& op, const DeviceWeight& gain, TensorIndex input, TensorIndex output,
              int64_t rows);
  Status rope(const Step& step);
  Status element_wise(const char* name, const std::vector<TensorIndex>& inputs, TensorIndex output,
                      int64_t rows);
  Status add(const Step& step);
  Status concat(const Step& step);
  Status gather(const Step& step);
  Status attention(const Step& step);
  Status join_splits(const graph::HeadShape& heads, cl_mem partials, int64_t splits, const View& y,
                     int64_t n_rows);
  int64_t most_keys() const;
  Status kv_write(const Step& step);

  Status products(const Step& step);
  Status silu(const Step& step, int64_t m);
  Status few(const Step& step, ProductTask& task);
  std::optional<RowsShape> unit_shape(const Step& step, int64_t m) const;
  Status by_units(const Step& step, ProductTask& task, const RowsShape& shape);

  // Keys and values of a layer from a head on, in elements of the cache's type.
  struct KvPlaces {
    cl_mem buffer = nullptr;
    uint64_t first = 0;
    uint64_t head_step = 0;
    uint64_t values = 0;  // from keys to values of a head
  };
  Result<KvPlaces> kv_places(const graph::Op& op, int64_t kv_head);

  cl_command_queue queue_;
  KernelSet& kernels_;
  Mirrors& mirrors_;
  Scratch& scratch_;
  const BatchData& batch_data_;
  const Program& program_;
  const graph::Graph& graph_;
  const Bindings& bindings_;
  const BatchView& batch_;
  Launches* launches_ = nullptr;  // of the running step
};

}  // namespace troika::device::opencl
