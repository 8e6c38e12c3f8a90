#include "troika/device/openvino/module/stage_compiler.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace troika::device::openvino {
namespace {

// While kernels live their weights stay where they are: the address names them.
std::string by_address(const model::Weight& weight) {
  return fmt::format("{}", static_cast<const void*>(weight.data));
}

// FNV-1a, four streams of 8 bytes at once: weights are hundreds of megabytes.
std::string by_content(const model::Weight& weight) {
  constexpr uint64_t kPrime = 0x100000001b3u;
  constexpr size_t kStreams = 4;
  uint64_t sums[kStreams] = {1, 2, 3, 4};
  const auto bytes = static_cast<size_t>(weight.bytes());
  size_t at = 0;
  for (; at + sizeof(sums) <= bytes; at += sizeof(sums)) {
    uint64_t words[kStreams];
    std::memcpy(words, weight.data + at, sizeof(words));
    for (size_t i = 0; i < kStreams; ++i) {
      sums[i] = (sums[i] ^ words[i]) * kPrime;
      sums[i] ^= sums[i] >> 29;
    }
  }
  for (; at < bytes; ++at)
    sums[0] = (sums[0] ^ std::to_integer<uint64_t>(weight.data[at])) * kPrime;
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", sums[0], sums[1], sums[2], sums[3]);
}

std::string describe(const ov::AnyMap& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += fmt::format("{}={} ", key, value.as<std::string>());
  }
  return text;
}

}  // namespace

StageCompiler::StageCompiler(PluginState& plugin, const std::string& cache_dir)
    : plugin_(plugin), store_(cache_dir) {}

Result<std::shared_ptr<CompiledStage>> StageCompiler::compile(const Program& program,
                                                              const Segment& segment) {
  GraphForm form;
  form.weights = segment.one_product && plugin_.weights == WeightForm::kBlocks ? WeightForm::kLevels
                                                                               : plugin_.weights;
  form.weight_inputs = plugin_.weight_inputs;
  form.rows = std::min(program.max_rows, plugin_.most_rows);
  const std::string description = describe_graph(program, segment, form, by_address);
  if (auto stage = stages_.find(description)) return stage;
  const GraphBytes bytes = graph_bytes(program, segment, form);
  auto stage = std::make_shared<CompiledStage>();
  stage->rows = form.rows;
  stage->weights = form.weights;
  stage->weight_inputs = form.weight_inputs;
  stage->bytes = bytes.weights + bytes.between;
  if (auto loaded = load(program, segment, form)) {
    stage->model = std::move(*loaded);
    stage->bytes += bytes.weights;  // it came with weights of its own
  } else {
    ASSIGN_OR_RETURN(stage->model, compile_and_keep(program, segment, form));
  }
  stages_.keep(description, stage);
  return stage;
}

// What a stored graph must have in common with the one that is wanted.
std::string StageCompiler::identity(const Program& program, const Segment& segment,
                                    const GraphForm& form) const {
  return fmt::format("{}\n{}\n{}", plugin_.version, describe(plugin_.compile_options),
                     describe_graph(program, segment, form, by_content));
}

std::optional<ov::CompiledModel> StageCompiler::load(const Program& program, const Segment& segment,
                                                     const GraphForm& form) {
  if (!store_.enabled()) return std::nullopt;
  const auto stored = store_.find(identity(program, segment, form));
  if (!stored) return std::nullopt;
  try {
    std::istringstream stream(*stored);
    return plugin_.core.import_model(stream, plugin_.plugin, plugin_.compile_options);
  } catch (const std::exception&) {
    return std::nullopt;  // whole, yet not to OpenVINO's liking: compiled again and replaced
  }
}

Result<ov::CompiledModel> StageCompiler::compile_and_keep(const Program& program,
                                                          const Segment& segment,
                                                          const GraphForm& form) {
  ASSIGN_OR_RETURN(const auto graph, build_graph(program, segment, form, weights_));
  ov::CompiledModel model =
      plugin_.core.compile_model(graph, plugin_.plugin, plugin_.compile_options);
  if (store_.enabled()) {
    std::ostringstream stream;
    model.export_model(stream);
    store_.keep(identity(program, segment, form), stream.str());
  }
  return model;
}

int64_t StageCompiler::bytes() const {
  return weights_.bytes() + stages_.total([](const CompiledStage& stage) { return stage.bytes; });
}

}  // namespace troika::device::openvino
