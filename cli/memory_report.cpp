#include "cli/memory_report.h"

#include <algorithm>

#include "cli/process_memory.h"

namespace troika::cli {
namespace {

std::string mib(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

double percent_of(int64_t bytes, int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(bytes) / static_cast<double>(all);
}

}  // namespace

int64_t MemoryReport::unexplained() const {
  int64_t rest = rss;
  for (const MemoryRow& row : rows) rest -= row.resident;
  return rest;
}

Result<MemoryReport> memory_report(const LoadedEngine& loaded) {
  const auto unsupported = [](std::string_view why) {
    return make_error(ErrorCode::kUnsupported, "who holds the memory cannot be told here: {}", why);
  };
  const auto before = mapped_memory();
  if (!before) return unsupported(before.error().message);
  trim_heap();
  const auto mapped = mapped_memory();
  if (!mapped) return unsupported(mapped.error().message);
  const std::optional<int64_t> heap = heap_in_use();
  if (!heap) return unsupported("the C library does not say how much of the heap is in use");

  MemoryReport report;
  report.rss = std::max(before->resident, mapped->resident);
  const engine::Engine& engine = *loaded.engine;
  for (const device::PoolShare& share : engine.resident_memory()) {
    if (share.resident < 0) return unsupported("the system does not say which pages are resident");
    report.rows.push_back({share.owner, share.resident, share.reserved});
  }
  int64_t other_heap = *heap;
  for (const auto& device : engine.devices()) {
    const int64_t own = device->stats().own_bytes;
    report.rows.push_back({device->info().name, own, {}});
    other_heap -= own;
  }
  const int64_t tables = std::min(loaded.model_heap_bytes, std::max<int64_t>(other_heap, 0));
  report.rows.push_back({"model tables", tables, {}});
  report.rows.push_back({"other heap", other_heap - tables, {}});
  report.rows.push_back({"freed heap", report.rss - mapped->resident, {}});
  report.rows.push_back({"program and libraries", mapped->files, {}});
  report.rows.push_back({"generated code", mapped->generated_code, {}});
  report.rows.push_back({"stacks", mapped->stacks, {}});
  return report;
}

std::string memory_table(const MemoryReport& report) {
  size_t width = std::string_view("program and libraries").size();
  for (const MemoryRow& row : report.rows) width = std::max(width, row.owner.size());
  const auto line = [&](std::string_view owner, int64_t resident, std::string_view reserved) {
    return fmt::format("{:<{}} {:>10} {:>6.1f} {:>10}\n", owner, width, mib(resident),
                       percent_of(resident, report.rss), reserved);
  };
  std::string text = fmt::format("\n{:<{}} {:>10} {:>6} {:>10}\n", "memory, MiB", width, "resident",
                                 "%", "reserved");
  for (const MemoryRow& row : report.rows) {
    text += line(row.owner, row.resident, row.reserved ? mib(*row.reserved) : "");
  }
  text += line("unexplained", report.unexplained(), "");
  return text + line("all (RSS)", report.rss, "");
}

Json memory_json(const MemoryReport& report) {
  Json rows = Json::array();
  for (const MemoryRow& row : report.rows) {
    Json json = {{"owner", row.owner}, {"resident_bytes", row.resident}};
    if (row.reserved) json["reserved_bytes"] = *row.reserved;
    rows.push_back(std::move(json));
  }
  return {{"rows", std::move(rows)},
          {"unexplained_bytes", report.unexplained()},
          {"rss_bytes", report.rss}};
}

std::optional<MemoryReport> print_memory(const LoadedEngine& loaded, const EngineFlags& flags,
                                         Console& console) {
  if (!flags.memory) return std::nullopt;
  auto report = memory_report(loaded);
  if (!report) {
    console.warn(report.error().message);
    return std::nullopt;
  }
  console.status(memory_table(*report));
  return std::move(*report);
}

}  // namespace troika::cli
