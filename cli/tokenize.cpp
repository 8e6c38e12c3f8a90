// troika tokenize: the tokens of a text.
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

class Tokenize final : public Verb {
 public:
  void declare(Flags& flags) override {
    model_.declare(flags);
    prompt_.declare(flags);
    flags.begin_group("Tokens");
    flags.toggle("--no-special", no_special_, "Names of special tokens are plain text");
    flags.toggle("--no-parse-special", no_special_, "As --no-special");
    flags.toggle("--no-bos", no_bos_, "No BOS, even where the model's file asks for it");
    flags.toggle("--ids", ids_only_, "Print only a list of ids");
    flags.toggle("--json", json_, "Print {\"tokens\": [...], \"pieces\": [...]}");
    flags.set_examples(
        "  troika tokenize -p \"Hello world\"\n"
        "  troika tokenize --json --no-special -f README.md\n");
    flags_ = &flags;
  }

  Status run(Console& console) override {
    ASSIGN_OR_RETURN(const std::string text, prompt_.read(*flags_));
    ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(model_, false, 1, console));
    const model::Tokenizer& tokenizer = loaded.model.tokenizer();
    const std::vector<model::TokenId> ids = encode_raw(tokenizer, text, !no_special_, !no_bos_);
    if (ids_only_) return console.print(fmt::format("[{}]\n", fmt::join(ids, ", ")));
    if (json_) {
      Json pieces = Json::array();
      for (model::TokenId id : ids) pieces.push_back(valid_utf8(tokenizer.piece(id, true)));
      return print_json(console, {{"tokens", ids}, {"pieces", pieces}});
    }
    std::string lines;
    for (model::TokenId id : ids) {
      lines += fmt::format("{:6d} '{}'\n", id, printable(tokenizer.piece(id, true)));
    }
    return console.print(lines);
  }

 private:
  ModelFlags model_;
  PromptFlags prompt_;
  bool no_special_ = false;
  bool no_bos_ = false;
  bool ids_only_ = false;
  bool json_ = false;
  const Flags* flags_ = nullptr;
};

}  // namespace

std::unique_ptr<Verb> make_tokenize() { return std::make_unique<Tokenize>(); }

}  // namespace troika::cli
