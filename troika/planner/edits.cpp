#include "troika/planner/edits.h"

#include <algorithm>
#include <array>

#include "troika/plan/steps.h"
#include "troika/planner/critical_path.h"

namespace troika::planner {
namespace {

using graph::Stage;

// What counts as critical (HeteroMosaic: 0.1 ms), and the pause that is tried (the same: 250 us).
constexpr double kCriticalSlackUs = 100;
constexpr double kPauseUs = 250;
// Parts of the whole that are moved at once.
constexpr std::array kSteps = {0.2, 0.05, 0.0125};
// Less than this share is none.
constexpr double kLeastShare = 0.01;

// Critical work, us, by stage and device: what a pass can be shortened by.
class Criticality {
 public:
  Criticality(const sim::PassSchedule& schedule, std::span<const sim::TaskTimes> times)
      : n_devices_(schedule.schedule.n_devices), us_(kStages * n_devices_ * (n_devices_ + 1), 0) {
    const CriticalPath path = critical_path(schedule.schedule, times);
    const std::vector<Interval> all = intervals(schedule.schedule, times, path, kCriticalSlackUs);
    for (size_t i = 0; i < times.size(); ++i) {
      if (path.slack_us[i] > kCriticalSlackUs) continue;
      const auto device = static_cast<size_t>(schedule.schedule.tasks[i].device);
      add(all, times[i], index(schedule.places[i].stage, device, 0));
    }
  }
  double of(Stage stage, size_t device) const { return us_[index(stage, device, n_devices_)]; }
  // Of it, while `other` had nothing to do.
  double while_idle(Stage stage, size_t device, size_t other) const {
    return us_[index(stage, device, other)];
  }

 private:
  static constexpr size_t kStages = 5;
  size_t index(Stage stage, size_t device, size_t other) const {
    return (static_cast<size_t>(stage) * n_devices_ + device) * (n_devices_ + 1) + other;
  }
  // Where several tasks are critical at once, one that becomes shorter gains only its part.
  void add(const std::vector<Interval>& all, const sim::TaskTimes& task, size_t first) {
    auto at =
        std::upper_bound(all.begin(), all.end(), task.start_us,
                         [](double us, const Interval& interval) { return us < interval.end_us; });
    for (; at != all.end() && at->begin_us < task.end_us; ++at) {
      const double us = std::min(task.end_us, at->end_us) - std::max(task.start_us, at->begin_us);
      const double gain_us = us / std::max(1.0, at->pressure());
      us_[first + n_devices_] += gain_us;
      for (size_t other = 0; other < n_devices_; ++other) {
        if ((at->devices >> other & 1) == 0) us_[first + other] += gain_us;
      }
    }
  }

  size_t n_devices_;
  std::vector<double> us_;
};

class Editor {
 public:
  Editor(const PassSpace& space, const Strategy& strategy, const plan::RowsBucket& bucket,
         const PassEvaluator& run, std::span<const Candidate> solved)
      : space_(space),
        strategy_(strategy),
        bucket_(bucket),
        solved_(solved),
        critical_(run.schedule(), run.times()),
        most_chunks_(strategy.most_chunks_for(space.request().rows)),
        chunks_(plan::chunk_count(bucket, space.request().rows)) {}

  std::vector<Edit> run() {
    for (size_t g = 0; g < space_.groups().size(); ++g) edit_group(g);
    edit_pauses();
    if (strategy_.all_edits) {
      move_all_shares();
      edit_stages();
      take_solved_stages();
      edit_chunks();
    }
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Ranked& a, const Ranked& b) { return a.rank > b.rank; });
    std::vector<Edit> edits;
    for (Ranked& one : edits_) edits.push_back(std::move(one.edit));
    return edits;
  }

 private:
  struct Ranked {
    double rank = 0;  // critical time that it may shorten
    Edit edit;
  };

  const std::string& name(size_t device) const { return space_.infos()[device].name; }
  std::string name_of(size_t group) const {
    return space_.sites()[space_.groups()[group].sites.front()].name;
  }
  Stage stage_of(size_t group) const {
    return space_.sites()[space_.groups()[group].sites.front()].stage;
  }
  void add(double rank, std::string what, plan::RowsBucket bucket) {
    edits_.push_back({rank, {std::move(what), std::move(bucket)}});
  }

  // Shares by the strategy's quantum of what is cut.
  std::vector<double> steps(size_t group, plan::Cut cut) const {
    const int64_t quantum =
        cut == plan::Cut::kActivationCentric ? strategy_.row_quantum : strategy_.input_quantum;
    if (quantum <= 0 || (cut != plan::Cut::kActivationCentric && cut != plan::Cut::kK)) {
      return {kSteps.begin(), kSteps.end()};
    }
    const int64_t rows = bucket_.chunks.empty() ? space_.request().rows : bucket_.chunks.front();
    const int64_t extent = cut == plan::Cut::kActivationCentric ? rows : space_.groups()[group].k;
    return {static_cast<double>(quantum) / static_cast<double>(std::max(extent, quantum))};
  }

  void edit_group(size_t group) {
    const Choice choice = space_.choice(bucket_, group);
    if (choice.devices.empty()) return;
    if (choice.devices.size() > 1) {
      move_shares(group, choice, -1);
      if (strategy_.all_edits && chunks_ > 1 && chunks_ <= most_chunks_ &&
          !space_.is_head(space_.groups()[group])) {
        const bool last_only = choice.cut == plan::Cut::kK;  // weights are cut once for all chunks
        if (!last_only) {
          move_shares(group, space_.choice(bucket_, group, 0), 0);
          move_shares(group, space_.choice(bucket_, group, chunks_ - 1), chunks_ - 1);
        }
      }
    }
    open_cuts(group, choice);
    if (strategy_.all_edits) {
      place_whole(group, choice);
      take_solved(group, choice);
    }
  }

  void take_solved(size_t group, const Choice& choice) {
    for (const Candidate& candidate : solved_) {
      const Choice own = space_.choice(candidate.bucket, group);
      const bool same =
          own.cut == choice.cut && own.devices == choice.devices && own.shares == choice.shares;
      if (same || own.devices.empty()) continue;
      plan::RowsBucket edited = bucket_;
      space_.set_choice(edited, group, own);
      add(critical_.of(stage_of(group), choice.devices.front()),
          fmt::format("{}: as {} has it", name_of(group), candidate.name), std::move(edited));
    }
  }

  void move_shares(size_t group, const Choice& choice, int32_t chunk) {
    double sum = 0;
    for (const double share : choice.shares) sum += share;
    for (size_t from = 0; from < choice.devices.size(); ++from) {
      for (size_t to = 0; to < choice.devices.size(); ++to) {
        if (from == to) continue;
        const double rank =
            critical_.while_idle(stage_of(group), choice.devices[from], choice.devices[to]);
        for (const double step : steps(group, choice.cut)) {
          Choice moved = choice;
          for (double& share : moved.shares) share /= sum;
          const double part = move(moved, from, to, step, 1);
          plan::RowsBucket edited = bucket_;
          space_.set_choice(edited, group, moved, chunk);
          add(rank,
              fmt::format("{}{}: {:.1f} % from {} to {}", name_of(group),
                          chunk < 0 ? "" : fmt::format(" of chunk {}", chunk), 100 * part,
                          name(choice.devices[from]), name(choice.devices[to])),
              std::move(edited));
        }
      }
    }
  }

  // A part of `sum`, that of all shares, at most what there is; a device that is left with next to
  // nothing is dropped. Returns what was moved.
  static double move(Choice& choice, size_t from, size_t to, double step, double sum) {
    const double part = std::min(step * sum, choice.shares[from]);
    choice.shares[from] -= part;
    choice.shares[to] += part;
    if (choice.shares[from] < kLeastShare * sum) drop(choice, from);
    return part;
  }

  // Of every product that both devices have a part of, at once.
  void move_all_shares() {
    const size_t devices = space_.infos().size();
    for (size_t from = 0; from < devices; ++from) {
      for (size_t to = 0; to < devices; ++to) {
        if (from == to) continue;
        for (const double step : kSteps) move_all(from, to, step / 2);
      }
    }
  }

  void move_all(size_t from, size_t to, double step) {
    plan::RowsBucket edited = bucket_;
    double rank = 0;
    int moved = 0;
    for (size_t g = 0; g < space_.groups().size(); ++g) {
      if (space_.is_head(space_.groups()[g])) continue;
      for (int32_t chunk = -1; chunk < chunks_; ++chunk) {
        Choice choice = space_.choice(bucket_, g, chunk);
        if (chunk >= 0 && !has_own(g, chunk)) continue;
        const auto place = [&](size_t device) {
          return std::find(choice.devices.begin(), choice.devices.end(), device) -
                 choice.devices.begin();
        };
        const auto source = static_cast<size_t>(place(from));
        const auto target = static_cast<size_t>(place(to));
        if (source == choice.devices.size() || target == choice.devices.size()) continue;
        double sum = 0;
        for (const double share : choice.shares) sum += share;
        move(choice, source, target, step, sum);
        space_.set_choice(edited, g, choice, chunk);
        rank += critical_.while_idle(stage_of(g), from, to);
        ++moved;
      }
    }
    if (moved < 2) return;
    add(rank, fmt::format("all: {:.1f} % from {} to {}", 100 * step, name(from), name(to)),
        std::move(edited));
  }

  bool has_own(size_t group, int32_t chunk) const {
    return std::any_of(
        bucket_.placements.begin(), bucket_.placements.end(), [&](const plan::Placement& one) {
          return one.chunk == chunk && one.stage == stage_of(group) && one.op == name_of(group);
        });
  }

  static void drop(Choice& choice, size_t part) {
    choice.devices.erase(choice.devices.begin() + static_cast<std::ptrdiff_t>(part));
    choice.shares.erase(choice.shares.begin() + static_cast<std::ptrdiff_t>(part));
    if (choice.devices.size() == 1) choice = {plan::Cut::kNone, choice.devices, {1}};
  }

  std::vector<plan::Cut> cuts_for(size_t group) const {
    const SiteGroup& own = space_.groups()[group];
    const int64_t rows = space_.product(own, space_.request().rows).m;
    std::vector<plan::Cut> cuts;
    if (strategy_.cuts_outputs(rows)) cuts.push_back(plan::Cut::kWeightCentric);
    if (strategy_.cut_inputs) cuts.push_back(plan::Cut::kK);
    if (strategy_.cut_rows && !space_.is_head(own) && rows > 1) {
      cuts.push_back(plan::Cut::kActivationCentric);
    }
    return cuts;
  }

  // A device more, or another cut among the same ones.
  void open_cuts(size_t group, const Choice& choice) {
    for (const plan::Cut cut : cuts_for(group)) {
      if (choice.devices.size() > 1 && cut != choice.cut && strategy_.all_edits) {
        plan::RowsBucket edited = bucket_;
        space_.set_choice(edited, group, {cut, choice.devices, choice.shares});
        add(0, fmt::format("{}: {}", name_of(group), to_string(cut)), std::move(edited));
      }
      if (choice.devices.size() > 1 && (cut != choice.cut || !strategy_.all_edits)) continue;
      for (size_t device = 0; device < space_.infos().size(); ++device) {
        const bool has =
            std::find(choice.devices.begin(), choice.devices.end(), device) != choice.devices.end();
        if (has || !space_.can(device, space_.groups()[group])) continue;
        const double rank = critical_.while_idle(stage_of(group), choice.devices.front(), device);
        for (const double step : steps(group, cut)) {
          if (step < 0.05) continue;
          Choice opened = choice;
          opened.cut = cut;
          double sum = 0;
          for (const double share : opened.shares) sum += share;
          for (double& share : opened.shares) share *= (1 - step) / sum;
          opened.devices.push_back(device);
          opened.shares.push_back(step);
          plan::RowsBucket edited = bucket_;
          space_.set_choice(edited, group, opened);
          add(rank,
              fmt::format("{}: {:.1f} % to {}, {}", name_of(group), 100 * step, name(device),
                          to_string(cut)),
              std::move(edited));
        }
      }
    }
  }

  void place_whole(size_t group, const Choice& choice) {
    for (size_t device = 0; device < space_.infos().size(); ++device) {
      const bool there = choice.devices.size() == 1 && choice.devices.front() == device;
      if (there || !space_.can(device, space_.groups()[group])) continue;
      plan::RowsBucket edited = bucket_;
      std::erase_if(edited.placements, [&](const plan::Placement& placement) {
        return placement.chunk >= 0 && placement.op == name_of(group);
      });
      space_.set_choice(edited, group, {plan::Cut::kNone, {device}, {1}});
      add(critical_.of(stage_of(group), choice.devices.front()),
          fmt::format("{}: whole on {}", name_of(group), name(device)), std::move(edited));
    }
  }

  // Whole stages, with all that is no product: another device, or shares of those that divide it.
  void edit_stages() {
    for (size_t p = 0; p < bucket_.placements.size(); ++p) {
      const plan::Placement& placement = bucket_.placements[p];
      if (!placement.op.empty()) continue;
      if (placement.parts.size() > 1) move_parts(p);
      for (size_t device = 0; device < space_.infos().size(); ++device) {
        if (!space_.can_host(device) || placement.parts.front().device == name(device)) continue;
        if (placement.cut != plan::Cut::kNone) continue;
        plan::RowsBucket edited = bucket_;
        edited.placements[p].parts = {space_.part(device, 1)};
        add(critical_.of(placement.stage, space_.device(placement.parts.front().device)),
            fmt::format("{}: whole on {}", to_string(placement.stage), name(device)),
            std::move(edited));
        if (placement.stage != Stage::kAttention) continue;
        edited = bucket_;
        edited.placements[p].cut = plan::Cut::kWeightCentric;
        edited.placements[p].parts.push_back(space_.part(device, 0.25));
        add(critical_.of(placement.stage, space_.device(placement.parts.front().device)),
            fmt::format("A: heads to {}", name(device)), std::move(edited));
      }
    }
  }

  // A whole stage with all its products.
  void take_solved_stages() {
    for (const Stage stage : {Stage::kG1, Stage::kAttention, Stage::kG2}) {
      double rank = 0;
      for (size_t device = 0; device < space_.infos().size(); ++device) {
        rank += critical_.of(stage, device);
      }
      for (const Candidate& candidate : solved_) {
        plan::RowsBucket edited = bucket_;
        std::erase_if(edited.placements, [&](const auto& one) { return one.stage == stage; });
        for (const plan::Placement& one : candidate.bucket.placements) {
          if (one.stage == stage) edited.placements.push_back(one);
        }
        add(rank, fmt::format("{}: as {} has it", to_string(stage), candidate.name),
            std::move(edited));
      }
    }
  }

  void move_parts(size_t placement) {
    const auto& parts = bucket_.placements[placement].parts;
    double sum = 0;
    for (const plan::Part& part : parts) sum += part.share;
    for (size_t from = 0; from < parts.size(); ++from) {
      for (size_t to = 0; to < parts.size(); ++to) {
        if (from == to) continue;
        const Stage stage = bucket_.placements[placement].stage;
        for (const double step : kSteps) {
          plan::RowsBucket edited = bucket_;
          auto& own = edited.placements[placement];
          const double part = std::min(step * sum, own.parts[from].share);
          own.parts[from].share -= part;
          own.parts[to].share += part;
          if (own.parts[from].share < kLeastShare * sum) {
            own.parts.erase(own.parts.begin() + static_cast<std::ptrdiff_t>(from));
            if (own.parts.size() == 1) own.cut = plan::Cut::kNone;
          }
          add(critical_.while_idle(stage, space_.device(parts[from].device),
                                   space_.device(parts[to].device)),
              fmt::format("{}: {:.1f} % from {} to {}", to_string(stage), 100 * part / sum,
                          parts[from].device, parts[to].device),
              std::move(edited));
        }
      }
    }
  }

  void edit_pauses() {
    if (chunks_ < 2) return;
    for (size_t p = 0; p < bucket_.placements.size(); ++p) {
      const plan::Placement& placement = bucket_.placements[p];
      if (placement.stage == Stage::kInput || placement.stage == Stage::kHead) continue;
      const double pause_us = placement.delay_us > 0 ? 0 : kPauseUs;
      plan::RowsBucket edited = bucket_;
      edited.placements[p].delay_us = pause_us;
      add(0,
          fmt::format("{} {}: pause of {:.0f} us", to_string(placement.stage), placement.op,
                      pause_us),
          std::move(edited));
    }
  }

  void with_sizes(std::vector<int64_t> sizes, const std::string& what) {
    plan::RowsBucket edited = bucket_;
    const auto count = static_cast<int32_t>(sizes.size());
    std::erase_if(edited.placements, [&](const auto& one) { return one.chunk >= count; });
    edited.order.clear();
    if (count == 1) {
      sizes.clear();
      for (plan::Placement& placement : edited.placements) placement.join_chunks = 1;
    }
    edited.chunks = std::move(sizes);
    add(0, what, std::move(edited));
  }

  void edit_chunks() {
    const std::vector<int64_t> now = plan::chunk_sizes(bucket_, space_.request().rows);
    const int64_t quantum = std::max<int64_t>(1, strategy_.chunk_quantum);
    for (size_t from = 0; now.size() > 1 && from < now.size(); ++from) {
      for (const size_t to : {from + 1, from - 1}) {
        if (to >= now.size()) continue;
        for (const int64_t part : {now[from] / 4 / quantum * quantum, quantum}) {
          if (part <= 0 || now[from] <= part) continue;
          std::vector<int64_t> moved = now;
          moved[from] -= part;
          moved[to] += part;
          with_sizes(std::move(moved), fmt::format("{} rows from chunk {} to {}", part, from, to));
        }
      }
    }
    if (chunks_ < most_chunks_) {
      const auto largest = std::max_element(now.begin(), now.end()) - now.begin();
      std::vector<int64_t> split = now;
      const int64_t half = now[static_cast<size_t>(largest)] / 2 / quantum * quantum;
      if (half > 0 && half < now[static_cast<size_t>(largest)]) {
        split[static_cast<size_t>(largest)] -= half;
        split.insert(split.begin() + largest + 1, half);
        with_sizes(std::move(split), fmt::format("chunk {} in two", largest));
      }
    }
    cut_by_products();
    for (size_t c = 0; c + 1 < now.size(); ++c) {
      std::vector<int64_t> merged = now;
      merged[c] += merged[c + 1];
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(c) + 1);
      with_sizes(std::move(merged), fmt::format("chunks {} and {} in one", c, c + 1));
    }
    if (now.size() < 2) return;
    edit_order();
  }

  // As many equal chunks as there may be, by products: neither gains without the other.
  void cut_by_products() {
    if (strategy_.lags.empty()) return;
    const int64_t quantum = std::max<int64_t>(1, strategy_.chunk_quantum);
    const int64_t rows = space_.request().rows;
    for (int64_t count = 2; count <= most_chunks_; ++count) {
      const int64_t size = (rows + count * quantum - 1) / (count * quantum) * quantum;
      if (size * (count - 1) >= rows) return;
      plan::RowsBucket edited = bucket_;
      std::erase_if(edited.placements, [&](const auto& one) { return one.chunk >= count; });
      edited.chunks = {size};
      edited.in_flight = 0;
      edited.order.clear();
      edited.order_rule = plan::OrderRule::kProducts;
      edited.lag = strategy_.lags[strategy_.lags.size() / 2];
      add(0, fmt::format("{} chunks by products", count), std::move(edited));
    }
  }

  void edit_order() {
    for (const int64_t window : strategy_.windows) {
      if (window == bucket_.in_flight) continue;
      plan::RowsBucket edited = bucket_;
      edited.in_flight = window;
      edited.order.clear();
      add(0, fmt::format("{} chunks in flight", window), std::move(edited));
    }
    for (const plan::OrderRule rule : {plan::OrderRule::kStages, plan::OrderRule::kWavefront}) {
      if (rule != bucket_.order_rule) with_order(rule, 0);
    }
    if (strategy_.lags.empty()) return;
    if (bucket_.order_rule != plan::OrderRule::kProducts) {
      for (const int32_t lag : strategy_.lags) with_order(plan::OrderRule::kProducts, lag);
      return;
    }
    for (const int32_t step : {-3, -2, -1, 1, 2, 3}) {
      if (bucket_.lag + step >= 0) with_order(plan::OrderRule::kProducts, bucket_.lag + step);
    }
  }

  void with_order(plan::OrderRule rule, int32_t lag) {
    plan::RowsBucket edited = bucket_;
    edited.order.clear();
    edited.order_rule = rule;
    edited.lag = lag;
    std::string what = "order " + order_name(edited);
    add(0, std::move(what), std::move(edited));
  }

  const PassSpace& space_;
  const Strategy& strategy_;
  const plan::RowsBucket& bucket_;
  std::span<const Candidate> solved_;
  Criticality critical_;
  int64_t most_chunks_;
  int32_t chunks_;
  std::vector<Ranked> edits_;
};

}  // namespace

std::vector<Edit> edits_of(const PassSpace& space, const Strategy& strategy,
                           const plan::RowsBucket& bucket, const PassEvaluator& run,
                           std::span<const Candidate> solved) {
  return Editor(space, strategy, bucket, run, solved).run();
}

}  // namespace troika::planner
