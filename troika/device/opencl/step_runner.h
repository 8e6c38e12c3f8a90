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
  Result<KvPlaces> kv_places(const graph::Op& op, int64_t kv_head);

  Result<View> view(TensorIndex index);
  int64_t width(TensorIndex index) const;
  int64_t rows(const Step& step) const { return batch_.row_count(step.rows); }
  // The batch, and where in it a part of it begins.
  void add_batch(Arguments& arguments, int64_t part) const {
    const Place place = batch_data_.place();
    arguments.buffer(place.buffer).place(place.floats() + static_cast<uint64_t>(part));
  }
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
  // True where attention_few.cl can.
  bool takes_few(const graph::HeadShape& heads, int64_t n_rows);
  Status attention_few(const Step& step, const KvPlaces& kv);
  Status join_splits(const graph::HeadShape& heads, const Place& partials, int64_t splits,
                     const View& y, int64_t n_rows);
  int64_t most_keys() const;
  Status kv_write(const Step& step);

  Status products(const Step& step);
  Status queue_products(const Step& step, ProductTask& task);
  Status silu(const Step& step, int64_t m);
  Status few(const Step& step, ProductTask& task);
  Result<KvTarget> kv_target(const Step& write);
  std::optional<RowsShape> unit_shape(const Step& step, int64_t m) const;
  Status by_units(const Step& step, ProductTask& task, const RowsShape& shape);

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
