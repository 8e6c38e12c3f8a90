// Compiles segments, once for each graph, and keeps what was compiled on disk if wanted.
#pragma once

#include <memory>
#include <openvino/runtime/compiled_model.hpp>
#include <optional>
#include <string>

#include "troika/base/held_values.h"
#include "troika/device/openvino/module/graph_store.h"
#include "troika/device/openvino/module/plugin.h"

namespace troika::device::openvino {

// A compiled graph; kernels with equal graphs share one.
struct CompiledStage {
  ov::CompiledModel model;
  int64_t rows = 0;   // of its inputs and outputs
  int64_t bytes = 0;  // that it holds beside what it shares with others, about
  WeightForm weights = WeightForm::kBlocks;
  bool weight_inputs = false;  // behind its other inputs it has those of weight_inputs()
};

// Threads: one at a time. What it gives may outlive it, but not the weights that it was made of.
class StageCompiler {
 public:
  // `plugin` must outlive the compiler.
  StageCompiler(PluginState& plugin, const std::string& cache_dir);

  // A graph for tasks of `program.max_rows` rows, or of a part of them. May throw what OpenVINO
  // throws.
  Result<std::shared_ptr<CompiledStage>> compile(const Program& program, const Segment& segment);

  // Memory of all graphs in use, about.
  int64_t bytes() const;

 private:
  std::string identity(const Program& program, const Segment& segment, const GraphForm& form) const;
  std::optional<ov::CompiledModel> load(const Program& program, const Segment& segment,
                                        const GraphForm& form);
  Result<ov::CompiledModel> compile_and_keep(const Program& program, const Segment& segment,
                                             const GraphForm& form);

  PluginState& plugin_;
  GraphStore store_;
  WeightStore weights_;
  HeldValues<std::string, CompiledStage> stages_;  // by description
};

}  // namespace troika::device::openvino
