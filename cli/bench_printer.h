// Rows of a benchmark on stdout: a Markdown table, JSON, JSON lines, or CSV.
#pragma once

#include <memory>
#include <string>

#include "cli/bench_row.h"
#include "cli/console.h"

namespace troika::cli {

// begin(), then row() for each, then end(). Borrows the console.
class BenchPrinter {
 public:
  virtual ~BenchPrinter() = default;
  virtual Status begin(const BenchMatrix& matrix) = 0;
  virtual Status row(const BenchRow& row) = 0;
  virtual Status end() = 0;
};

// `format`: md, json, jsonl or csv.
std::unique_ptr<BenchPrinter> make_bench_printer(const std::string& format, Console& console);

}  // namespace troika::cli
