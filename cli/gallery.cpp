// troika gallery: a page with the timeline of each strategy side by side, for chips and models.
#include "cli/gallery_page.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/question_flags.h"
#include "cli/sweep_lists.h"
#include "cli/verbs.h"
#include "troika/base/write_file.h"

namespace troika::cli {
namespace {

// A page of more is slow to show.
constexpr size_t kMostTimelines = 1000;

class Gallery final : public Verb {
 public:
  void declare(Flags& flags) override {
    lists_.declare(flags);
    question_.declare(flags);
    flags.begin_group("Output");
    flags.output("-o,--output", output_, "The page");
    flags.integer("-t,--threads", threads_, {0, 1024}, "0: every core (default: 0)");
    flags.set_examples(
        "  troika gallery --soc snapdragon-8-gen-3 --shape llama-3-8b,phi-3.5-mini "
        "--strategy single:gpu,layer,heteroinfer,heteromosaic,troika -o gallery.html\n");
  }

  Status run(Console& console) override {
    if (!lists_.given() || output_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--soc LIST, --shape LIST and -o FILE are needed; see 'troika gallery "
                        "--help'");
    }
    RETURN_IF_ERROR(check_writable("the page", output_));
    forecast::SweepOptions options;
    ASSIGN_OR_RETURN(options.question, question_.question());
    options.question.with_trace = true;
    options.threads = sweep_threads(threads_);
    options.stop = &interrupt_flag();
    RETURN_IF_ERROR(lists_.read());
    if (lists_.cases().size() > kMostTimelines) {
      return make_error(ErrorCode::kInvalidArgument, "{} timelines, more than {}",
                        lists_.cases().size(), kMostTimelines);
    }
    std::vector<GalleryRow> rows(lists_.cases().size());
    RETURN_IF_ERROR(forecasts(console, options, rows));
    return write_file("the page", output_, gallery_page(heading(), groups(std::move(rows))));
  }

 private:
  Status forecasts(Console& console, const forecast::SweepOptions& options,
                   std::vector<GalleryRow>& rows) const {
    Progress progress(console, "timelines");
    size_t done = 0;
    const forecast::SweepCase* const first = lists_.cases().data();
    const auto row = [&](const forecast::SweepCase& one,
                         const Result<forecast::Answer>& answer) -> Status {
      GalleryRow& place = rows[static_cast<size_t>(&one - first)];
      place.strategy = one.strategy;
      if (answer) {
        place.answer = *answer;
      } else {
        place.error = answer.error().message;
      }
      progress.update(++done, rows.size());
      return {};
    };
    RETURN_IF_ERROR(forecast::sweep(lists_.chips(), lists_.models(), lists_.cases(), options, row));
    if (done == rows.size()) return {};
    return make_error(ErrorCode::kCancelled, "interrupted");
  }

  std::string heading() const { return "Settings: " + question_.settings() + "."; }

  // Strategies follow each other in the list of cases.
  std::vector<GalleryGroup> groups(std::vector<GalleryRow> rows) const {
    std::vector<GalleryGroup> all;
    const forecast::SweepCase* before = nullptr;
    for (size_t i = 0; i < rows.size(); ++i) {
      const forecast::SweepCase& one = lists_.cases()[i];
      const bool same = before != nullptr && before->chip == one.chip &&
                        before->model == one.model && before->prompt == one.prompt &&
                        before->generate == one.generate;
      if (!same) {
        const forecast::SweepChip& chip = lists_.chips()[one.chip];
        all.push_back({fmt::format("{}: {}, {} tokens in, {} out", chip.soc.name,
                                   lists_.models()[one.model].name, one.prompt, one.generate),
                       chip.soc.stack,
                       {}});
      }
      all.back().rows.push_back(std::move(rows[i]));
      before = &one;
    }
    return all;
  }

  SweepLists lists_;
  QuestionFlags question_;
  std::string output_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_gallery() { return std::make_unique<Gallery>(); }

}  // namespace troika::cli
