// troika inspect: what a model file holds, without loading its weights.
#include "cli/default_model.h"
#include "cli/gguf_report.h"
#include "cli/json_output.h"
#include "cli/verbs.h"
#include "troika/model/gguf.h"
#include "troika/model/model.h"

namespace troika::cli {
namespace {

class Inspect final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Model");
    flags.file("-m,--model", path_, "GGUF file (default: the default model)", "LLAMA_ARG_MODEL");
    flags.begin_group("Output");
    flags.toggle("--all", all_, "Print long lists of the metadata whole");
    flags.toggle("--no-tensors", no_tensors_, "Leave out the table of tensors");
    flags.toggle("--json", json_, "Print one JSON object");
    flags.set_examples(
        "  troika inspect -m model.gguf\n"
        "  troika inspect --json | jq .hyper_parameters\n");
  }

  Status run(Console& console) override {
    ASSIGN_OR_RETURN(const std::string path, model_path(path_));
    ASSIGN_OR_RETURN(const auto source, model::open_file_source(path));
    const auto header = model::read_gguf_header(*source);
    if (!header) {
      return make_error(header.error().code, "{}: {}", path, header.error().message);
    }
    model::LoadOptions options;
    options.weights = false;
    auto model = model::Model::load(path, options);
    // A sound file of a kind that cannot be run here is still worth showing.
    if (!model && model.error().code != ErrorCode::kUnsupported) {
      return tl::unexpected<Error>(model.error());
    }
    const model::Model* known = model ? &*model : nullptr;
    const std::string reason = model ? "" : model.error().message;
    const GgufReport report{path, *header, known, reason, all_, !no_tensors_};
    return json_ ? print_json(console, report_json(report), 2) : console.print(report_text(report));
  }

 private:
  std::string path_;
  bool all_ = false;
  bool no_tensors_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_inspect() { return std::make_unique<Inspect>(); }

}  // namespace troika::cli
