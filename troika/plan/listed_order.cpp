#include "troika/plan/listed_order.h"

#include <functional>
#include <queue>
#include <string>
#include <string_view>

namespace troika::plan {
namespace {

using graph::Stage;

// The devices that may have a part in a step, a bit each.
class Participants {
 public:
  Participants(const Plan& plan, const RowsBucket& bucket, const StepTable& table)
      : table_(table), masks_(table.units(), 0) {
    std::vector<uint64_t> input(static_cast<size_t>(table.chunks()), 0);
    std::vector<bool> follows(static_cast<size_t>(table.positions()), false);
    for (const Placement& placement : bucket.placements) {
      const uint64_t mask = mask_of(plan, placement);
      if (placement.stage == Stage::kInput)
        each_chunk(placement, [&](size_t c) { input[c] |= mask; });
      const auto stage = std::find(kLayerStages.begin(), kLayerStages.end(), placement.stage);
      if (stage == kLayerStages.end()) continue;
      for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
        const auto position = layer * kStages + static_cast<int32_t>(stage - kLayerStages.begin());
        if (placement.cut == Cut::kPaired) follows[static_cast<size_t>(position)] = true;
        each_chunk(placement, [&](size_t c) { at(position, c) |= mask; });
      }
    }
    for (size_t c = 0; c < input.size() && table.positions() > 0; ++c) at(0, c) |= input[c];
    // Paired stages go on where the slices are that the stage before left.
    for (int32_t position = 1; position < table.positions(); ++position) {
      if (!follows[static_cast<size_t>(position)]) continue;
      for (size_t c = 0; c < input.size(); ++c) at(position, c) |= at(position - 1, c);
    }
  }

  uint64_t of(const Step& step, int32_t position) const {
    uint64_t mask = 0;
    for (int32_t c = step.chunk; c < step.chunk + step.chunks; ++c) {
      mask |= masks_[index(position, static_cast<size_t>(c))];
    }
    return mask;
  }

 private:
  static uint64_t mask_of(const Plan& plan, const Placement& placement) {
    uint64_t mask = 0;
    for (const Part& part : placement.parts) {
      mask |= uint64_t{1} << device_index(plan.devices, part);
    }
    return mask;
  }
  void each_chunk(const Placement& placement, const std::function<void(size_t)>& visit) const {
    for (int32_t chunk = 0; chunk < table_.chunks(); ++chunk) {
      if (placement.chunk < 0 || placement.chunk == chunk) visit(static_cast<size_t>(chunk));
    }
  }
  size_t index(int32_t position, size_t chunk) const {
    return static_cast<size_t>(position) * static_cast<size_t>(table_.chunks()) + chunk;
  }
  uint64_t& at(int32_t position, size_t chunk) { return masks_[index(position, chunk)]; }

  const StepTable& table_;
  std::vector<uint64_t> masks_;  // by position and chunk
};

// Reads a list and brings it into an order in which every step comes after what it needs.
class ListedOrder {
 public:
  ListedOrder(const Plan& plan, const RowsBucket& bucket, const StepTable& table)
      : plan_(plan), bucket_(bucket), table_(table), place_(table.units(), kNowhere) {}

  Result<std::vector<Step>> run() {
    RETURN_IF_ERROR(read());
    find_edges();
    return sort();
  }

 private:
  static constexpr int32_t kNowhere = -1;

  struct Listed {
    Step step;
    int32_t position = 0;
    size_t entry = 0;
  };

  static std::string name(const Step& step) {
    const std::string what =
        fmt::format("{} layer {} chunk {}", to_string(step.stage), step.layer, step.chunk);
    return step.chunks == 1 ? what : what + fmt::format(" to {}", step.chunk + step.chunks - 1);
  }
  tl::unexpected<Error> wrong(const std::string& place, const Step& step,
                              std::string_view what) const {
    return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, {}: {} {}",
                      bucket_.max_rows, place, name(step), what);
  }

  Status read() {
    for (size_t i = 0; i < bucket_.order.size(); ++i) {
      const OrderEntry& entry = bucket_.order[i];
      const int32_t end = std::min(entry.last_chunk + 1, table_.chunks());
      for (int32_t layer = entry.first_layer; layer <= entry.last_layer; ++layer) {
        for (int32_t stage = 0; stage < kStages; ++stage) {
          if (entry.stage && *entry.stage != kLayerStages[static_cast<size_t>(stage)]) continue;
          for (int32_t chunk = entry.first_chunk; chunk < end; ++chunk) {
            RETURN_IF_ERROR(add(layer * kStages + stage, chunk, i));
          }
        }
      }
    }
    if (members_left_ > 0) return unfinished();
    for (int32_t position = 0; position < table_.positions(); ++position) {
      for (int32_t chunk = 0; chunk < table_.chunks(); ++chunk) {
        if (place_[table_.unit(position, chunk)] != kNowhere) continue;
        return wrong("order", {table_.step_at(position, chunk).stage, position / kStages, chunk},
                     "is missing");
      }
    }
    return {};
  }

  tl::unexpected<Error> unfinished() const {
    return wrong(fmt::format("order[{}]", listed_.back().entry), listed_.back().step,
                 "join: their chunks have to follow each other");
  }

  // The chunks that join come one after another and count as one step.
  Status add(int32_t position, int32_t chunk, size_t entry) {
    const Step step = table_.step_at(position, chunk);
    int32_t& place = place_[table_.unit(position, chunk)];
    if (members_left_ > 0) {
      const Listed& open = listed_.back();
      const int32_t next = open.step.chunk + open.step.chunks - members_left_;
      if (open.position != position || next != chunk) return unfinished();
      --members_left_;
      return {};
    }
    if (place != kNowhere) {
      return wrong(fmt::format("order[{}]", entry), {step.stage, step.layer, chunk},
                   "stands twice");
    }
    place = static_cast<int32_t>(listed_.size());
    listed_.push_back({step, position, entry});
    if (step.chunk != chunk) return unfinished();
    members_left_ = step.chunks - 1;
    return {};
  }

  // Of data: a chunk's next stage, and G1 of all chunks up to its own before A, through a point in
  // each layer and chunk at which those are done. Of queues: a device's next step.
  void find_edges() {
    const size_t chunks = static_cast<size_t>(table_.chunks());
    const auto point = [&](int32_t layer, int32_t chunk) {
      return table_.units() + static_cast<size_t>(layer) * chunks + static_cast<size_t>(chunk);
    };
    next_.resize(table_.units() + static_cast<size_t>(table_.layers()) * chunks);
    needs_.resize(next_.size(), 0);
    for (int32_t position = 0; position < table_.positions(); ++position) {
      const int32_t layer = position / kStages;
      for (int32_t chunk = 0; chunk < table_.chunks(); ++chunk) {
        const size_t unit = table_.unit(position, chunk);
        if (position + 1 < table_.positions()) add_edge(unit, table_.unit(position + 1, chunk));
        if (position % kStages == 0) {
          add_edge(unit, point(layer, chunk));
          if (chunk > 0) add_edge(point(layer, chunk - 1), point(layer, chunk));
          add_edge(point(layer, chunk), table_.unit(position + 1, chunk));
        }
      }
    }
    const Participants participants(plan_, bucket_, table_);
    std::vector<int32_t> last(plan_.devices.size(), kNowhere);
    for (size_t i = 0; i < listed_.size(); ++i) {
      const uint64_t mask = participants.of(listed_[i].step, listed_[i].position);
      for (size_t device = 0; device < last.size(); ++device) {
        if ((mask >> device & 1) == 0) continue;
        if (last[device] != kNowhere) {
          add_edge(unit_of(listed_[static_cast<size_t>(last[device])]), unit_of(listed_[i]));
        }
        last[device] = static_cast<int32_t>(i);
      }
    }
  }

  size_t unit_of(const Listed& listed) const {
    return table_.unit(listed.position, listed.step.chunk);
  }
  void add_edge(size_t from, size_t to) {
    next_[from].push_back(to);
    ++needs_[to];
  }

  // Of the steps whose needs are met, always the first of the list.
  Result<std::vector<Step>> sort() {
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (size_t i = 0; i < listed_.size(); ++i) {
      if (needs_[unit_of(listed_[i])] == 0) ready.push(static_cast<int32_t>(i));
    }
    StepList list(table_);
    std::vector<bool> done(listed_.size(), false);
    while (!ready.empty()) {
      const auto i = static_cast<size_t>(ready.top());
      ready.pop();
      done[i] = true;
      list.add(listed_[i].step);
      finish(unit_of(listed_[i]), ready);
    }
    const auto stuck = std::find(done.begin(), done.end(), false);
    if (stuck == done.end()) return list.take();
    const Listed& first = listed_[static_cast<size_t>(stuck - done.begin())];
    return wrong(fmt::format("order[{}]", first.entry), first.step,
                 "stands in a device's queue before what it needs: they would wait for each other");
  }

  template <class Queue>
  void finish(size_t node, Queue& ready) {
    std::vector<size_t> finished = {node};
    while (!finished.empty()) {
      const size_t from = finished.back();
      finished.pop_back();
      for (const size_t to : next_[from]) {
        if (--needs_[to] > 0) continue;
        if (to < table_.units()) {
          ready.push(place_[to]);
        } else {
          finished.push_back(to);
        }
      }
    }
  }

  const Plan& plan_;
  const RowsBucket& bucket_;
  const StepTable& table_;
  std::vector<int32_t> place_;  // by unit: index into listed_
  std::vector<Listed> listed_;
  int32_t members_left_ = 0;  // of the last one's chunks
  std::vector<std::vector<size_t>> next_;
  std::vector<int32_t> needs_;
};

}  // namespace

Status check_entries(const RowsBucket& bucket, int32_t n_layers, int32_t n_chunks) {
  for (size_t i = 0; i < bucket.order.size(); ++i) {
    const OrderEntry& entry = bucket.order[i];
    const auto refuse = [&](const std::string& what) {
      return make_error(ErrorCode::kInvalidData, "plan: bucket of {} rows, order[{}]: {}",
                        bucket.max_rows, i, what);
    };
    if (entry.stage && (*entry.stage == Stage::kInput || *entry.stage == Stage::kHead)) {
      return refuse(
          fmt::format("stage {} has its fixed place: list G1, A and G2", to_string(*entry.stage)));
    }
    if (entry.first_layer < 0 || entry.last_layer < entry.first_layer ||
        entry.last_layer >= n_layers) {
      return refuse(fmt::format("layers {} to {} are not in 0 to {}", entry.first_layer,
                                entry.last_layer, n_layers - 1));
    }
    if (entry.first_chunk < 0 || entry.last_chunk < entry.first_chunk ||
        entry.last_chunk >= n_chunks) {
      return refuse(fmt::format("chunks {} to {} are not in 0 to {}", entry.first_chunk,
                                entry.last_chunk, n_chunks - 1));
    }
  }
  return {};
}

Result<std::vector<Step>> order_by_list(const Plan& plan, const RowsBucket& bucket,
                                        const StepTable& table) {
  return ListedOrder(plan, bucket, table).run();
}

}  // namespace troika::plan
