// Compiles segments, once for each graph, and keeps what was compiled on disk if wanted.
#pragma once

#include <map>
#include <memory>
#include <openvino/runtime/compiled_model.hpp>
#include <string>

#include "troika/device/openvino/module/graph_store.h"
#include "troika/device/openvino/module/plugin.h"

namespace troika::device::openvino {

// A compiled graph; kernels with equal graphs share one.
struct CompiledStage {
  ov::CompiledModel model;
  int64_t constant_bytes = 0;
};

// Task lengths that graphs are made for; the last is the longest that there is.
inline constexpr int64_t kStandardRows[] = {1, 32, 64, 128, 256, 512, 1024};
inline constexpr int64_t kMaxStandardRows = 1024;

class StageCompiler {
 public:
  // `plugin` must outlive the compiler.
  StageCompiler(PluginState& plugin, const std::string& cache_dir);

  // A graph for tasks of `program.max_rows` rows, which may serve others too. May throw what
  // OpenVINO throws.
  Result<std::shared_ptr<CompiledStage>> compile(const Program& program, const Segment& segment);

  // Of all graphs in use, about.
  int64_t constant_bytes() const;

 private:
  Result<ov::CompiledModel> load_or_compile(const Program& program, const Segment& segment,
                                            const GraphForm& form);

  PluginState& plugin_;
  GraphStore store_;
  std::map<std::string, std::weak_ptr<CompiledStage>> stages_;  // by description
};

}  // namespace troika::device::openvino
