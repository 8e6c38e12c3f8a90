#include "troika/planner/even_loads.h"

#include <algorithm>
#include <cmath>

#include "troika/planner/group_division.h"
#include "troika/planner/product_time.h"

namespace troika::planner {
namespace {

// Less than this share is none.
constexpr double kLeastEvenShare = 0.01;
// More ways to place whole products are not looked at.
constexpr size_t kMostWays = 4096;
// So many of the ways in which one product is divided are starts.
constexpr size_t kMostWhole = 2;

// When all end that work, HUGE_VAL if nobody can.
double even_end_us(const std::vector<double>& before_us, const std::vector<double>& work_us) {
  double low = HUGE_VAL;
  double high = HUGE_VAL;
  for (size_t d = 0; d < work_us.size(); ++d) {
    if (!std::isfinite(work_us[d])) continue;
    low = std::min(low, before_us[d]);
    high = std::min(high, before_us[d] + work_us[d]);
  }
  if (!std::isfinite(high)) return HUGE_VAL;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    double done = 0;
    for (size_t d = 0; d < work_us.size(); ++d) {
      if (std::isfinite(work_us[d])) done += std::max(0.0, middle - before_us[d]) / work_us[d];
    }
    (done < 1 ? low : high) = middle;
  }
  return high;
}

class EvenLoads {
 public:
  EvenLoads(const PassSpace& space, const Strategy& strategy, int64_t rows)
      : space_(space), strategy_(strategy), rows_(rows), before_us_(space.infos().size(), 0) {
    before_us_[space.home()] =
        space.other_us(space.home()) / space.cost().run_facts(space.home()).speed_among_others;
    for (size_t g = 0; g < space.groups().size(); ++g) {
      if (space.is_head(space.groups()[g])) continue;
      groups_.push_back(g);
      work_us_.push_back(work_us(space.groups()[g]));
    }
  }

  std::vector<Candidate> run() {
    std::vector<Candidate> candidates;
    if (groups_.empty() || !find_heads()) return candidates;
    add_even(candidates);
    add_whole(candidates);
    return candidates;
  }

 private:
  // Of all the pass's rows in one layer, by device.
  std::vector<double> work_us(const SiteGroup& group) const {
    std::vector<double> all;
    const double chunks = static_cast<double>(space_.request().rows) / static_cast<double>(rows_);
    for (size_t device = 0; device < space_.infos().size(); ++device) {
      all.push_back(HUGE_VAL);
      if (!space_.can(device, group)) continue;
      cost::Product product = space_.product(group, rows_);
      for (const std::string_view type : soc::types_near(product.weight_bits)) {
        product.type = type;
        const auto whole =
            ProductTime(space_.cost(), product, within_pass(strategy_).rows).whole(device);
        if (!whole) continue;
        all.back() = chunks * whole->us / space_.cost().run_facts(device).speed_among_others;
        break;
      }
    }
    return all;
  }

  bool find_heads() {
    heads_.resize(space_.groups().size());
    for (size_t g = 0; g < space_.groups().size(); ++g) {
      if (!space_.is_head(space_.groups()[g])) continue;
      const auto division = divide(space_, space_.groups()[g], strategy_, rows_);
      if (!division) return false;
      heads_[g] = choice_of(*division, space_.cost());
    }
    return true;
  }

  static Choice choice(const std::vector<double>& shares, plan::Cut cut) {
    Choice choice;
    for (size_t d = 0; d < shares.size(); ++d) {
      if (shares[d] < kLeastEvenShare) continue;
      choice.devices.push_back(d);
      choice.shares.push_back(shares[d]);
    }
    choice.cut = choice.devices.size() > 1 ? cut : plan::Cut::kNone;
    return choice;
  }

  void add_even(std::vector<Candidate>& candidates) const {
    std::vector<double> sum(before_us_.size(), 0);
    for (const auto& group : work_us_) {
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += group[d];
    }
    const Choice own = choice(even_shares(before_us_, sum), plan::Cut::kWeightCentric);
    if (own.devices.size() < 2) return;
    std::vector<Choice> choices = heads_;
    for (const size_t g : groups_) choices[g] = own;
    candidates.push_back({"even", space_.bucket(space_.home(), choices), false});
    if (!strategy_.paired) return;
    for (const size_t g : groups_) {
      const auto before = group_before(space_, g);
      if (before) choices[g].cut = choices[*before].cut = plan::Cut::kPaired;
    }
    candidates.push_back({"even, paired", space_.bucket(space_.home(), choices), false});
  }

  // One product is divided, the others are where its parts then end soonest: all ways are tried.
  void add_whole(std::vector<Candidate>& candidates) const {
    const size_t devices = before_us_.size();
    size_t ways = 1;
    for (size_t i = 1; i < groups_.size(); ++i) ways *= devices;
    if (ways > kMostWays) return;
    struct Way {
      double us = HUGE_VAL;
      size_t divided = 0;
      std::vector<size_t> owners;  // by group, but for the divided one
      std::vector<double> before_us;
    };
    std::vector<Way> best(groups_.size());
    for (size_t divided = 0; divided < groups_.size(); ++divided) {
      best[divided].divided = divided;
      for (size_t way = 0; way < ways; ++way) {
        Way own{HUGE_VAL, divided, {}, before_us_};
        size_t rest = way;
        for (size_t g = 0; g < groups_.size(); ++g) {
          own.owners.push_back(g == divided ? 0 : rest % devices);
          if (g == divided) continue;
          rest /= devices;
          own.before_us[own.owners[g]] += work_us_[g][own.owners[g]];
        }
        own.us = even_end_us(own.before_us, work_us_[divided]);
        for (const double us : own.before_us) own.us = std::max(own.us, us);
        if (own.us < best[divided].us) best[divided] = std::move(own);
      }
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const Way& a, const Way& b) { return a.us < b.us; });
    for (size_t i = 0; i < std::min(best.size(), kMostWhole); ++i) {
      const Way& way = best[i];
      if (!std::isfinite(way.us)) return;
      std::vector<Choice> choices = heads_;
      for (size_t g = 0; g < groups_.size(); ++g) {
        choices[groups_[g]] = {plan::Cut::kNone, {way.owners[g]}, {1}};
      }
      const size_t group = groups_[way.divided];
      choices[group] =
          choice(even_shares(way.before_us, work_us_[way.divided]), plan::Cut::kWeightCentric);
      const Site& site = space_.sites()[space_.groups()[group].sites.front()];
      candidates.push_back(
          {"even but for " + site.name, space_.bucket(space_.home(), choices), false});
    }
  }

  const PassSpace& space_;
  const Strategy& strategy_;
  int64_t rows_;
  std::vector<double> before_us_;             // by device: what is no product, in one layer
  std::vector<size_t> groups_;                // of layers
  std::vector<std::vector<double>> work_us_;  // of those, by device
  std::vector<Choice> heads_;                 // by group
};

}  // namespace

std::vector<double> even_shares(const std::vector<double>& before_us,
                                const std::vector<double>& work_us) {
  const double end_us = even_end_us(before_us, work_us);
  std::vector<double> shares(work_us.size(), 0);
  if (!std::isfinite(end_us)) return shares;
  double sum = 0;
  for (size_t d = 0; d < shares.size(); ++d) {
    if (!std::isfinite(work_us[d])) continue;
    shares[d] = work_us[d] > 0 ? std::max(0.0, end_us - before_us[d]) / work_us[d] : 1;
    sum += shares[d];
  }
  for (double& share : shares) share = sum > 0 ? share / sum : 0;
  return shares;
}

std::vector<Candidate> even_candidates(const PassSpace& space, const Strategy& strategy,
                                       int64_t rows) {
  return EvenLoads(space, strategy, rows).run();
}

}  // namespace troika::planner
