// troika bench: prefill and decode speed, in every combination asked for, beside the machine's
// peak.
#include <algorithm>

#include "cli/bench_measure.h"
#include "cli/bench_printer.h"
#include "cli/load.h"
#include "cli/memory_report.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

class Bench final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Tests (lists: 1,2,4; ranges: 128-512+128, 1-8*2)");
    flags.text("-p,--n-prompt", lists_.n_prompt, "LIST", "Prompt tokens; 0: none (default: 512)");
    flags.text("-n,--n-gen", lists_.n_gen, "LIST", "Generated tokens; 0: none (default: 128)");
    flags.texts("--prompt-generate", lists_.prompt_gen, "PP,TG",
                "A prompt and then tokens, as one test; may be given several times");
    flags.text("-d,--n-depth", lists_.n_depth, "LIST",
               "Tokens of context before the test begins (default: 0)");
    flags.integer("-r,--repetitions", repetitions_, {1, 10'000}, "Samples of each (default: 5)");
    flags.toggle("--no-warmup", no_warmup_, "Do not run each test once before measuring");
    model_.declare(flags);
    engine_.declare_devices(flags);
    flags.text("-t,--threads", lists_.threads, "LIST",
               "Cores of all devices together (default: every core)", "LLAMA_ARG_THREADS");
    flags.text("--ubatch-size", lists_.ubatch, "LIST", "Rows of one pass (default: 512)");
    flags.ignored("-b,--batch-size", Flags::Arity::kOne, "-ub alone bounds a pass here");
    flags.name("--cache-type-k", lists_.kv_types, "LIST", "KV cache: f32, f16 (default: f32)");
    flags.ignored("--cache-type-v", Flags::Arity::kOne, "it is always as -ctk");
    flags.begin_group("Output");
    flags.choice("-o,--output", format_, {"md", "json", "jsonl", "csv"}, "Format");
    flags.toggle("--progress", progress_, "Tell on stderr what is measured");
    flags.set_examples(
        "  troika bench\n"
        "  troika bench -p 128-512+128 -n 0 -t 1,2\n"
        "  troika bench -p 512 -n 128 -d 0,1024 -r 3 -o json\n"
        "  troika bench -pg 512,128 -ctk f32,f16\n\n"
        "Loading, compiling and choosing tokens are not part of the times. GB/s counts the\n"
        "weights and the KV cache that a pass reads at least once; GFLOPS counts two\n"
        "operations for each multiply-add.\n");
  }

  Status run(Console& console) override {
    lists_.devices = engine_.devices;
    ASSIGN_OR_RETURN(const BenchMatrix matrix, make_matrix(lists_));
    const auto printer = make_bench_printer(format_, console);
    RETURN_IF_ERROR(printer->begin(matrix));
    for (const BenchSetting& setting : matrix.settings) {
      RETURN_IF_ERROR(measure_setting(console, matrix, setting, *printer));
    }
    return printer->end();
  }

 private:
  Status measure_setting(Console& console, const BenchMatrix& matrix, const BenchSetting& setting,
                         BenchPrinter& printer) {
    EngineFlags flags = engine_;
    flags.threads = setting.threads;
    flags.ubatch = setting.ubatch;
    flags.batch = setting.ubatch;
    flags.context = matrix.context();
    flags.key_type = device::to_string(setting.kv_type);
    ASSIGN_OR_RETURN(LoadedEngine loaded, load_engine(model_, flags, console));
    ASSIGN_OR_RETURN(const Peak peak, peaks_.of(loaded.engine->options().threads));
    for (const BenchTest& test : matrix.tests) {
      const std::string what =
          fmt::format("{} with {} threads", test.name(), loaded.engine->options().threads);
      if (progress_) console.status("measuring " + what + "\n");
      if (!progress_) console.note("measuring " + what);
      BenchRow row = describe(loaded, setting, test);
      row.peak = peak;
      RETURN_IF_ERROR(measure(*loaded.engine, test, repetitions_, !no_warmup_, row));
      row.work = least_work(*loaded.engine, test);
      RETURN_IF_ERROR(printer.row(row));
    }
    print_memory(loaded, engine_, console);
    return save_trace(*loaded.engine, engine_);
  }

  ModelFlags model_;
  EngineFlags engine_;
  BenchLists lists_;
  int64_t repetitions_ = 5;
  bool no_warmup_ = false;
  bool progress_ = false;
  std::string format_ = "md";
  PeakStore peaks_;
};

}  // namespace

std::unique_ptr<Verb> make_bench() { return std::make_unique<Bench>(); }

}  // namespace troika::cli
