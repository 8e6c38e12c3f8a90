// troika trace: what a recorded run adds up to, and its timeline as a page.
#include "cli/text.h"
#include "cli/trace_page.h"
#include "cli/trace_report.h"
#include "cli/verbs.h"
#include "troika/base/write_file.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

Status write_output(Console& console, std::string_view what, const std::string& path,
                    const std::string& text) {
  if (path == "-") return console.print(text);
  RETURN_IF_ERROR(write_file(what, path, text));
  console.note(fmt::format("wrote {} to {}", what, path));
  return {};
}

class TraceVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.positional(
        "FILE", path_,
        "A trace as 'troika run --trace FILE' writes it, or other Chrome trace events; "
        "'-' for standard input");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object instead of the tables");
    flags.output("-o,--output", output_, "Write the tables or the JSON object to a file");
    flags.output("--html", html_, "Write the timeline as one HTML page instead");
    flags.output("--chrome", chrome_, "Write Chrome trace events instead, which Perfetto opens");
    flags.integer("--longest", longest_, {0, 10'000}, "How many of the longest tasks to list");
    flags.set_examples(
        "  troika run -p \"Why is the sky blue?\" --trace run.json\n"
        "  troika trace run.json\n"
        "  troika trace run.json --json | jq '.devices[] | {name, busy_share}'\n"
        "  troika trace run.json --html run.html\n");
  }

  Status run(Console& console) override {
    if (path_.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "no trace given; see 'troika trace --help'");
    }
    ASSIGN_OR_RETURN(const Trace trace, read());
    const TraceSummary summary = summarize(trace, static_cast<size_t>(longest_));
    if (!html_.empty()) {
      RETURN_IF_ERROR(write_output(console, "the page", html_, trace_page(trace, summary)));
    }
    if (!chrome_.empty()) {
      RETURN_IF_ERROR(write_output(console, "the trace", chrome_, to_chrome_json(trace) + "\n"));
    }
    // The report unless something else was asked for.
    if ((!html_.empty() || !chrome_.empty()) && !json_ && output_.empty()) return {};
    return write_output(
        console, "the report", output_.empty() ? "-" : output_,
        json_ ? to_text(trace_json(trace, summary), 2) + "\n" : trace_text(trace, summary));
  }

 private:
  Result<Trace> read() const {
    ASSIGN_OR_RETURN(const std::string text, read_text(path_, kMaxFileBytes, "troika trace -"));
    auto trace = trace_from_chrome_json(text);
    if (trace) return trace;
    return make_error(trace.error().code, "{}: {}", path_, trace.error().message);
  }

  std::string path_;
  bool json_ = false;
  std::string output_;
  std::string html_;
  std::string chrome_;
  int64_t longest_ = 10;
};

}  // namespace

std::unique_ptr<Verb> make_trace() { return std::make_unique<TraceVerb>(); }

}  // namespace troika::cli
