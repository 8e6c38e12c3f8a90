// troika soc: descriptions of chips, by name, or from what was measured of this machine.
#include "troika/soc/soc.h"

#include "cli/cache_folder.h"
#include "cli/load.h"
#include "cli/measured_profile.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "troika/base/write_file.h"
#include "troika/cost/describe_profile.h"
#include "troika/graph/graph.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

class SocVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.positional(
        "ACTION", action_,
        "from-profile: a description from a profile; list: the descriptions there are; "
        "show: one of them");
    flags.positional(
        "NAME", name_,
        "With from-profile a profile's file; without it the stored profile of --device. "
        "With show a description's name");
    model_.declare(flags);
    flags.begin_group("from-profile");
    flags.name("--device", devices_, "LIST", "The devices of the stored profile (default: cpu)");
    flags.text("--name", chip_, "NAME", "The description's name (default: this-machine)");
    flags.begin_group("Output");
    flags.file("-o,--output", output_, "Write the description to a file");
    flags.set_examples(
        "  troika soc from-profile machine.json -o mine.json\n"
        "  troika soc from-profile --device cpu@0,openvino@1 -o mine.json\n"
        "  troika plan --soc ./mine.json --weight 4096x4096 --tokens 256\n"
        "  troika soc show snapdragon-8-gen-3\n");
  }

  Status run(Console& console) override {
    if (action_ == "list") return list(console);
    if (action_ == "show") {
      ASSIGN_OR_RETURN(const soc::Soc chip, soc::find(name_));
      return write(chip, console);
    }
    if (action_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "no action is given; actions: from-profile, list, show");
    }
    if (action_ != "from-profile") {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} is no action; actions: from-profile, list, show", in_quotes(action_));
    }
    ASSIGN_OR_RETURN(const profile::Profile profile, find_profile(console));
    ASSIGN_OR_RETURN(const soc::Soc chip, cost::describe_profile(profile, chip_));
    // What is written must be what is read: the name may be none.
    auto again = soc::from_json(soc::to_json(chip));
    if (!again) return tl::unexpected<Error>(again.error());
    return write(chip, console);
  }

 private:
  static Status list(Console& console) {
    std::string text;
    for (const soc::Description& one : soc::descriptions()) text += std::string(one.name) + "\n";
    return console.print(text);
  }

  Status write(const soc::Soc& chip, Console& console) const {
    const std::string text = soc::to_json(chip) + "\n";
    return output_.empty() ? console.print(text) : write_file("the description", output_, text);
  }

  Result<profile::Profile> find_profile(Console& console) const {
    if (!name_.empty()) return read_profile(name_);
    ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(model_, true, 0, console));
    ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(loaded.model));
    ProfileWish wish;
    wish.devices = devices_;
    wish.cache_folder = cache_folder();
    ASSIGN_OR_RETURN(const auto devices, open_for_profile(wish, console));
    auto stored = stored_profile(wish, graph, devices);
    if (stored) return stored;
    return make_error(stored.error().code, "{}: run 'troika profile --device {}' first",
                      stored.error().message, devices_);
  }

  ModelFlags model_;
  std::string action_;
  std::string name_;
  std::string devices_ = "cpu";
  std::string chip_ = "this-machine";
  std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_soc() { return std::make_unique<SocVerb>(); }

}  // namespace troika::cli
