// troika synth: writes a model of random weights.
#include "troika/model/synth.h"

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "troika/model/model_shape.h"
#include "troika/model/weight_mix.h"

namespace troika::cli {
namespace {

class Synth final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Model");
    flags.text("--shape", shape_, "SHAPE",
               "A name, or hidden,layers,heads,kv_heads,ffn,vocab; names: " + model::shape_names());
    flags.text("--type", type_, "TYPE", model::mix_names() + " (default: Q4_0)");
    flags.integer("-s,--seed", seed_, {0, INT64_MAX}, "Seed of the weights (default: 1)");
    flags.output("-o,--output", output_, "Where to write");
    flags.set_examples(
        "  troika synth --shape tiny --type Q8_0 -o tiny.gguf\n"
        "  troika synth --shape 256,4,8,2,704,1000 -o small.gguf --seed 7\n");
  }

  Status run(Console& console) override {
    if (shape_.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--shape is missing; give a name ({}) or "
                        "hidden,layers,heads,kv_heads,ffn,vocab",
                        model::shape_names());
    }
    if (output_.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "-o is missing; name the file to write");
    }
    model::SynthOptions options;
    ASSIGN_OR_RETURN(options.shape, model::parse_shape(shape_));
    const auto mix = model::parse_mix(type_);
    if (!mix) return make_error(mix.error().code, "--type: {}", mix.error().message);
    options.mix = *mix;
    options.seed = static_cast<uint64_t>(seed_);
    ASSIGN_OR_RETURN(const uint64_t bytes, model::synthetic_model_bytes(options));
    {
      Progress progress(console, "writing");
      options.progress = [&progress](uint64_t done, uint64_t all) {
        progress.update(done, all);
        return !interrupted();
      };
      if (auto written = model::write_synthetic_model(output_, options); !written) {
        if (!interrupted()) return written;
        return make_error(ErrorCode::kCancelled, "interrupted; nothing is left of {}",
                          in_quotes(output_));
      }
    }
    return console.print(fmt::format("wrote {}: {} weights of {:.1f} MB, seed {}\n",
                                     printable(output_), options.mix.name(),
                                     static_cast<double>(bytes) / 1e6, seed_));
  }

 private:
  std::string shape_;
  std::string type_ = "Q4_0";
  std::string output_;
  int64_t seed_ = 1;
};

}  // namespace

std::unique_ptr<Verb> make_synth() { return std::make_unique<Synth>(); }

}  // namespace troika::cli
