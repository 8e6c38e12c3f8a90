#include "troika/planner/ablation.h"

#include <functional>

namespace troika::planner {
namespace {

struct Idea {
  const char* name;
  std::function<void(Strategy&, PassRequest&)> add;
};

std::vector<Idea> ideas(sim::Sync fast) {
  return {
      {"layer", [](Strategy&, PassRequest&) {}},
      {"+ activation-centric", [](Strategy& s, PassRequest&) { s.cut_rows = true; }},
      {"+ operand order", [](Strategy& s, PassRequest&) { s.operand_order = true; }},
      {"+ weight-centric", [](Strategy& s, PassRequest&) { s.cut_outputs = true; }},
      {"+ paired cuts", [](Strategy& s, PassRequest&) { s.paired = s.cut_inputs = true; }},
      {"+ fast sync", [fast](Strategy&, PassRequest& r) { r.sync = fast; }},
      {"+ micro-batches",
       [](Strategy& s, PassRequest&) {
         s.most_chunks = kMostChunks;
         s.long_chunk = kLongChunk;
         s.windows = {0, 2, 3};
       }},
      {"+ trace-guided", [](Strategy& s, PassRequest&) { s.tune = s.all_edits = true; }},
  };
}

}  // namespace

Result<std::vector<AblationRow>> ablation(const graph::Graph& graph, const cost::CostModel& cost,
                                          const PassRequest& given) {
  Strategy strategy;
  strategy.operand_order = false;
  PassRequest request = given;
  request.sync = sim::Sync::kBlocking;
  std::vector<AblationRow> rows;
  for (const Idea& idea : ideas(given.sync)) {
    idea.add(strategy, request);
    strategy.name = idea.name;
    AblationRow row;
    row.name = idea.name;
    ASSIGN_OR_RETURN(row.plan, plan_pass(graph, cost, strategy, request));
    // What was found before is still allowed, and may be better than what the solver makes now.
    if (!rows.empty()) {
      auto before = evaluate(graph, cost, rows.back().plan.bucket, request);
      if (before && before->us < row.plan.forecast.us) {
        row.plan = rows.back().plan;
        row.plan.forecast = std::move(*before);
      }
    }
    row.us = row.plan.forecast.us;
    if (!rows.empty()) row.gain = rows.back().us / row.us;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troika::planner
