// troika reproduce: published figures beside what the simulator makes of the same runs.
#include <algorithm>
#include <thread>

#include "cli/comparison_report.h"
#include "cli/interrupt.h"
#include "cli/product_plots.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "troika/published/catalogue.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

class Reproduce final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.positional("PAPER", paper_,
                     "heteroinfer, heteromosaic, agent-xpu, llama-cpp, or all of them");
    flags.begin_group("Simulation");
    flags.file("--socs", socs_,
               "A folder with NAME.json of chips; those that it lacks are the program's own");
    flags.toggle("--calibration", calibration_, "Only the figures that the fit may see");
    flags.integer("--budget", budget_, {0, 10000000},
                  "Schedules to try for each pass; 0: the planner's default");
    flags.integer("-t,--threads", threads_, {0, 64}, "0: as many as there are cores");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object");
    flags.toggle("--html", html_, "Print one HTML page");
    flags.toggle("--markdown", markdown_, "Print docs/validation.md");
    flags.toggle("--bands", bands_, "Print validation/published.json: the errors of each chip");
    flags.set_examples(
        "  troika reproduce heteroinfer\n"
        "  troika reproduce all --json | jq '.validation'\n"
        "  troika reproduce heteroinfer --html > heteroinfer.html\n");
  }

  Status run(Console& console) override {
    if (paper_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "no paper given; see 'troika reproduce --help'");
    }
    const int outputs = static_cast<int>(json_) + static_cast<int>(html_) +
                        static_cast<int>(markdown_) + static_cast<int>(bands_);
    if (outputs > 1) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--json, --html, --markdown and --bands: one of them at most");
    }
    ASSIGN_OR_RETURN(const std::vector<published::Paper> papers, published::find(paper_));
    planner::Budget budget;
    if (budget_ > 0) budget.evaluations = budget_;
    reproduce::Runs runs([this](std::string_view name) { return description(name); }, budget);
    reproduce::CompareOptions options;
    options.only_calibrated = calibration_;
    options.threads = threads_ > 0 ? static_cast<int>(threads_)
                                   : static_cast<int>(std::thread::hardware_concurrency());
    Progress progress(console, "simulating");
    options.progress = [&](size_t done, size_t all) {
      progress.update(done, all);
      return !interrupted();
    };
    ASSIGN_OR_RETURN(const reproduce::Comparison comparison,
                     reproduce::compare(papers, runs, options));
    if (json_) return print_json(console, comparison_json(comparison), 2);
    if (bands_) return print_json(console, error_bands_json(comparison), 2);
    if (html_) {
      ASSIGN_OR_RETURN(const std::string plots, this->plots(papers));
      return console.print(comparison_html(comparison, plots));
    }
    return console.print(markdown_ ? comparison_markdown(comparison) : comparison_text(comparison));
  }

 private:
  // Of the chip on which HeteroInfer measured products.
  Result<std::string> plots(const std::vector<published::Paper>& papers) const {
    const bool wanted = std::any_of(papers.begin(), papers.end(),
                                    [](const auto& paper) { return paper.name == "heteroinfer"; });
    if (!wanted) return std::string();
    ASSIGN_OR_RETURN(soc::Soc soc, description("snapdragon-8-gen-3"));
    return product_plots_html(cost::DescribedCost(std::move(soc)));
  }

  Result<soc::Soc> description(std::string_view name) const {
    if (socs_.empty()) return soc::find(name);
    const std::string path = fmt::format("{}/{}.json", socs_, name);
    const auto text = read_text(path, kMaxFileBytes);
    if (!text && text.error().code == ErrorCode::kNotFound) return soc::find(name);
    if (!text) return tl::unexpected<Error>(text.error());
    auto soc = soc::from_json(*text);
    if (soc) return soc;
    return make_error(soc.error().code, "{}: {}", in_quotes(path), soc.error().message);
  }

  std::string paper_;
  std::string socs_;
  bool calibration_ = false;
  int64_t budget_ = 0;
  int64_t threads_ = 0;
  bool json_ = false;
  bool html_ = false;
  bool markdown_ = false;
  bool bands_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_reproduce() { return std::make_unique<Reproduce>(); }

}  // namespace troika::cli
