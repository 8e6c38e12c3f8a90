#include "cli/bench_printer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/options.h"
#include "cli/text.h"
#include "cli/version.h"

namespace troika::cli {
namespace {

class JsonPrinter final : public BenchPrinter {
 public:
  explicit JsonPrinter(Console& console) : console_(console) {}
  Status begin(const BenchMatrix&) override { return {}; }
  Status row(const BenchRow& row) override {
    rows_.push_back(to_json(row));
    return {};
  }
  // At the end only, so that a run that fails leaves no half array.
  Status end() override { return print_json(console_, rows_, 2); }

 private:
  Console& console_;
  Json rows_ = Json::array();
};

class JsonLinesPrinter final : public BenchPrinter {
 public:
  explicit JsonLinesPrinter(Console& console) : console_(console) {}
  Status begin(const BenchMatrix&) override { return {}; }
  Status row(const BenchRow& row) override { return print_json(console_, to_json(row)); }
  Status end() override { return {}; }

 private:
  Console& console_;
};

std::string csv_cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : to_text(value);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

class CsvPrinter final : public BenchPrinter {
 public:
  explicit CsvPrinter(Console& console) : console_(console) {}
  Status begin(const BenchMatrix&) override { return {}; }
  Status row(const BenchRow& row) override {
    std::string names;
    std::string cells;
    const Json json = to_json(row);
    for (const auto& [key, value] : json.items()) {
      const char* comma = cells.empty() ? "" : ",";
      names += fmt::format("{}{}", comma, key);
      cells += fmt::format("{}{}", comma, csv_cell(value));
    }
    names += '\n';
    cells += '\n';
    return console_.print(std::exchange(began_, true) ? cells : names + cells);
  }
  Status end() override { return {}; }

 private:
  Console& console_;
  bool began_ = false;
};

class MarkdownPrinter final : public BenchPrinter {
 public:
  explicit MarkdownPrinter(Console& console) : console_(console) {}

  Status begin(const BenchMatrix& matrix) override {
    const auto varies = [&matrix](auto member) {
      std::set<int64_t> values;
      for (const BenchSetting& s : matrix.settings) values.insert(static_cast<int64_t>(member(s)));
      return values.size() > 1;
    };
    show_kv_ = varies([](const BenchSetting& s) { return s.kv_type; });
    show_ubatch_ = varies([](const BenchSetting& s) { return s.ubatch; });
    for (const BenchSetting& s : matrix.settings) {
      devices_width_ = std::max(devices_width_, s.devices.size());
    }
    std::vector<std::string> titles = {"model", "size", "params", "devices", "threads"};
    if (show_kv_) titles.emplace_back("type_k");
    if (show_ubatch_) titles.emplace_back("n_ubatch");
    for (const char* title : {"test", "t/s", "achieved", "of peak"}) titles.emplace_back(title);
    std::string rule;
    for (size_t i = 0; i < titles.size(); ++i) {
      rule += fmt::format("| {}{} ", std::string(width(titles[i]) - 1, '-'), i == 0 ? "-" : ":");
    }
    header_ = line(titles, titles) + rule + "|\n";
    return {};
  }

  Status row(const BenchRow& row) override {
    std::vector<std::string> titles = {"model", "size", "params", "devices", "threads"};
    std::vector<std::string> cells = {
        printable(row.model_type),
        fmt::format("{:.2f} MiB", static_cast<double>(row.model_size) / (1 << 20)),
        fmt::format("{:.2f} M", static_cast<double>(row.model_n_params) / 1e6),
        fmt::format("{}", fmt::join(row.devices, ",")), fmt::format("{}", row.threads)};
    const auto add = [&](const char* title, std::string cell) {
      titles.emplace_back(title);
      cells.push_back(std::move(cell));
    };
    if (show_kv_) add("type_k", std::string(device::to_string(row.setting.kv_type)));
    if (show_ubatch_) add("n_ubatch", fmt::format("{}", row.setting.ubatch));
    const Statistics speed = statistics(row.tokens_per_second());
    add("test", row.test.name());
    add("t/s", fmt::format("{:.2f} ± {:.2f}", speed.mean, speed.stddev));
    add("achieved", row.bound_by_arithmetic() ? fmt::format("{:.1f} GFLOPS", row.gflops())
                                              : fmt::format("{:.2f} GB/s", row.gbps()));
    add("of peak", fmt::format("{:.0f} %", 100 * row.share_of_peak()));
    if (std::find(loads_.begin(), loads_.end(), row.load) == loads_.end()) {
      loads_.push_back(row.load);
      compiles_.push_back(row.compile);
    }
    peak_ = row.peak;
    // The header comes with the first row, so that a run that cannot begin prints nothing.
    return console_.print(std::exchange(header_, "") + line(titles, cells));
  }

  Status end() override {
    std::string text =
        fmt::format("\npeak: {:.1f} GFLOPS, {:.2f} GB/s (measured in this run, last setting)\n",
                    peak_.gflops, peak_.gbps);
    for (size_t i = 0; i < loads_.size(); ++i) {
      text += fmt::format("load: {:.0f} ms, compile: {:.0f} ms\n", to_ms(loads_[i]),
                          to_ms(compiles_[i]));
    }
    return console_.print(text + fmt::format("build: {} ({})\n", build_commit(), version()));
  }

 private:
  size_t width(std::string_view title) const {
    if (title == "model") return 28;
    if (title == "t/s") return 18;
    if (title == "test" || title == "achieved") return 16;
    if (title == "devices") return devices_width_;
    if (title == "size" || title == "params") return 12;
    return 8;
  }

  // The first column leans left, the others right. Characters are counted, not bytes.
  std::string line(const std::vector<std::string>& titles,
                   const std::vector<std::string>& cells) const {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto characters =
          static_cast<size_t>(std::count_if(cells[i].begin(), cells[i].end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
          }));
      const size_t wanted = width(titles[i]);
      const std::string gap(wanted > characters ? wanted - characters : 0, ' ');
      text += "| " + (i == 0 ? cells[i] + gap : gap + cells[i]) + " ";
    }
    return text + "|\n";
  }

  Console& console_;
  size_t devices_width_ = 12;
  std::string header_;
  bool show_kv_ = false;
  bool show_ubatch_ = false;
  std::vector<Duration> loads_;
  std::vector<Duration> compiles_;
  Peak peak_;
};

}  // namespace

std::unique_ptr<BenchPrinter> make_bench_printer(const std::string& format, Console& console) {
  if (format == "json") return std::make_unique<JsonPrinter>(console);
  if (format == "jsonl") return std::make_unique<JsonLinesPrinter>(console);
  if (format == "csv") return std::make_unique<CsvPrinter>(console);
  return std::make_unique<MarkdownPrinter>(console);
}

}  // namespace troika::cli
