// Who holds how much memory: what the engine, its devices, the heap and the libraries have, beside
// what the system counts for the whole process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/load.h"

namespace troika::cli {

struct MemoryRow {
  std::string owner;
  int64_t resident = 0;
  std::optional<int64_t> reserved;  // where address space is taken before it is used
};

struct MemoryReport {
  std::vector<MemoryRow> rows;
  int64_t rss = 0;

  // What no row explains; below zero if rows count something twice, or count what is not resident.
  int64_t unexplained() const;
};

// Gives freed memory back to the system on the way. kUnsupported with the reason where the system
// or the C library does not tell enough.
Result<MemoryReport> memory_report(const LoadedEngine& loaded);

// A line for each row, of equal width.
std::string memory_table(const MemoryReport& report);
Json memory_json(const MemoryReport& report);

// Prints the table on stderr if --memory asks for it, or why there is none. What it printed.
std::optional<MemoryReport> print_memory(const LoadedEngine& loaded, const EngineFlags& flags,
                                         Console& console);

}  // namespace troika::cli
