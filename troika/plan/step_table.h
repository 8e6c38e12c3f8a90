// The steps of one bucket by number, and the list that they are brought into; see steps.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "troika/plan/steps.h"

namespace troika::plan {

inline constexpr std::array kLayerStages = {graph::Stage::kG1, graph::Stage::kAttention,
                                            graph::Stage::kG2};
inline constexpr auto kStages = static_cast<int32_t>(kLayerStages.size());

// The steps of one bucket by number: a position is a stage of a layer, a unit a position's step.
class StepTable {
 public:
  StepTable(const RowsBucket& bucket, int32_t n_layers, int32_t n_chunks,
            const std::vector<bool>& apart)
      : joined_(bucket), n_layers_(n_layers), n_chunks_(n_chunks), apart_(apart) {}

  int32_t positions() const { return kStages * n_layers_; }
  int32_t layers() const { return n_layers_; }
  int32_t chunks() const { return n_chunks_; }
  int32_t group_size() const { return joined_.group_size(); }
  int32_t groups() const { return (n_chunks_ + group_size() - 1) / group_size(); }
  int32_t group_begin(int32_t group) const { return group * group_size(); }
  int32_t group_end(int32_t group) const { return std::min(n_chunks_, (group + 1) * group_size()); }

  Step step(graph::Stage stage, int32_t layer, int32_t chunk) const {
    const int32_t group = chunk / group_size();
    const int32_t begin = group_begin(group);
    const bool may_join = apart_.empty() || !apart_[static_cast<size_t>(group)];
    if (!may_join || group_end(group) - begin < 2 || !joined_.contains(stage, layer)) {
      return {stage, layer, chunk, 1};
    }
    return {stage, layer, begin, group_end(group) - begin};
  }
  Step step_at(int32_t position, int32_t chunk) const {
    return step(kLayerStages[static_cast<size_t>(position % kStages)], position / kStages, chunk);
  }
  size_t unit(int32_t position, int32_t chunk) const {
    return static_cast<size_t>(position) * static_cast<size_t>(n_chunks_) +
           static_cast<size_t>(step_at(position, chunk).chunk);
  }
  size_t units() const { return static_cast<size_t>(positions()) * static_cast<size_t>(n_chunks_); }

 private:
  JoinedStages joined_;
  int32_t n_layers_;
  int32_t n_chunks_;
  const std::vector<bool>& apart_;
};

// Appends steps, each chunk's input before its first.
class StepList {
 public:
  explicit StepList(const StepTable& table)
      : table_(table), has_input_(static_cast<size_t>(table.chunks()), false) {}

  void add(const Step& step) {
    for (int32_t chunk = step.chunk; chunk < step.chunk + step.chunks; ++chunk) add_input(chunk);
    steps_.push_back(step);
  }
  // A group's steps at a position, or one of their turns.
  void add_group(int32_t group, int32_t position, int32_t turn = -1) {
    for (int32_t chunk = table_.group_begin(group); chunk < table_.group_end(group);) {
      Step step = table_.step_at(position, chunk);
      step.turn = turn;
      add(step);
      chunk += step.chunks;
    }
  }
  std::vector<Step> take() {
    for (int32_t chunk = 0; chunk < table_.chunks(); ++chunk) add_input(chunk);  // without layers
    return std::move(steps_);
  }

 private:
  void add_input(int32_t chunk) {
    if (has_input_[static_cast<size_t>(chunk)]) return;
    const Step input = table_.step(graph::Stage::kInput, -1, chunk);
    for (int32_t c = input.chunk; c < input.chunk + input.chunks; ++c) {
      has_input_[static_cast<size_t>(c)] = true;
    }
    steps_.push_back(input);
  }

  const StepTable& table_;
  std::vector<bool> has_input_;
  std::vector<Step> steps_;
};

}  // namespace troika::plan
