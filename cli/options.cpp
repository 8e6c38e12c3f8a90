#include "cli/options.h"

#include <algorithm>
#include <random>

#include "cli/cache_folder.h"
#include "cli/version.h"

namespace troika::cli {
namespace {

// Tokens of one session at most; far above any model, far below an overflow.
constexpr int64_t kMaxContext = int64_t{1} << 24;
constexpr int64_t kMaxRank = int64_t{1} << 30;  // as the sampler allows
constexpr int64_t kMaxBatch = int64_t{1} << 20;

uint64_t random_seed() {
  std::random_device source;
  // 53 bits: every JSON reader gives the number back as it was.
  return ((uint64_t{source()} << 32) | source()) >> 11;
}

}  // namespace

void ModelFlags::declare(Flags& flags) {
  flags.begin_group("Model");
  flags.file("-m,--model", path,
             "GGUF file (default: models/SmolLM2-135M-Instruct.Q4_1.gguf of the project)",
             "LLAMA_ARG_MODEL");
  using enum Flags::Arity;
  const std::string reading = "weights are read into memory of their own";
  flags.ignored("--mmap,--no-mmap", kNone, reading);
  flags.ignored("--mlock", kNone, reading);
  flags.ignored("--load-mode", kOne, reading);
}

void EngineFlags::declare_devices(Flags& flags) {
  flags.begin_group("Devices");
  flags.name("--device", devices, "LIST",
             "Devices and their cores: cpu, cpu@0-1, cpu@0,openvino@1 (default: those of --plan, "
             "else cpu)",
             "LLAMA_ARG_DEVICE");
  flags.file("--plan", plan_path, "Who computes what, as written there");
  flags.name("--split", split, "RULE",
             "How work is cut among devices: [PHASE=]CUT[:SHARE/SHARE...], as in paired or "
             "prefill=activation-centric:60/40,decode=none (default: shares by measured rates)");
  flags.toggle(
      "--tune", tune,
      "Measure the devices, plan, and confirm the plan by alternating runs before anything "
      "else; later runs use it");
  declare_tune_budget(flags);
  flags.toggle("--no-guard", no_guard,
               "Every device takes part: at least a tenth of each product that is cut");
  flags.choice("--sync", sync, {"blocking", "predict", "queue"},
               "How devices wait for each other (default: queue)");
  flags.choice("--activations", activations, {"f32", "int8"},
               "Inputs of products: f32, or int8 (rounded in blocks of 32) on devices that can: "
               "openvino");
  flags.toggle(
      "--no-cache", no_cache,
      "Neither use nor keep what runs find out: checks of devices, rates, compiled graphs");
  flags.name("--kernels", kernels, "NAME",
             "Kernels of the cpu: portable, avx2, avx512 (default: the fastest)");
  flags.output("--trace", trace_path, "Write what ran when, for Perfetto or chrome://tracing");
  flags.toggle("--memory", memory, "Print on stderr, at the end, who holds how much memory");
  using enum Flags::Arity;
  flags.ignored("--n-gpu-layers,--gpu-layers", kOne, "devices are named by --device");
  flags.ignored("--flash-attn", kOptional, "attention never stores its scores");
}

void EngineFlags::declare_tune_budget(Flags& flags) {
  flags.integer("--tune-budget", tune_seconds, {1, 86400},
                "Seconds in which --tune confirms the plan, compiling included (default: 180)");
}

void EngineFlags::declare(Flags& flags) {
  declare_devices(flags);
  flags.integer("-t,--threads", threads, kThreadRange,
                "Cores of all devices together (default: every core)", "LLAMA_ARG_THREADS");
  flags.integer("--threads-batch", threads_batch, kThreadRange,
                "Accepted; the prompt uses the cores of -t", "LLAMA_ARG_THREADS_BATCH");
  flags.integer("-c,--ctx-size", context, {0, kMaxContext},
                fmt::format("Tokens of context; 0: as the model was trained (default: that, up to "
                            "{})",
                            kDefaultContextLimit),
                "LLAMA_ARG_CTX_SIZE");
  flags.integer("-b,--batch-size", batch, {1, kMaxBatch},
                "Tokens of a prompt handed over at once (default: 2048)", "LLAMA_ARG_BATCH");
  flags.integer("--ubatch-size", ubatch, kPassRange, "Rows of one pass (default: 512)",
                "LLAMA_ARG_UBATCH");
  flags.name("--cache-type-k", key_type, "TYPE", "KV cache: f32, f16 (default: f32)",
             "LLAMA_ARG_CACHE_TYPE_K");
  flags.name("--cache-type-v", value_type, "TYPE", "As --cache-type-k; both are equal",
             "LLAMA_ARG_CACHE_TYPE_V");
  key_type.clear();
  value_type.clear();
}

Result<device::KvType> parse_kv_type(std::string_view what, std::string_view name) {
  if (name == "f32") return device::KvType::kF32;
  if (name == "f16") return device::KvType::kF16;
  return make_error(ErrorCode::kInvalidArgument,
                    "{}: {} is not a type of the KV cache; allowed: f32, f16", what,
                    in_quotes(name));
}

std::string EngineFlags::cache() const { return no_cache ? "" : cache_folder(); }

device::OpenOptions EngineFlags::open_options() const {
  device::OpenOptions open;
  open.threads = static_cast<int>(std::max<int64_t>(threads, 0));
  open.kernels = kernels;
  open.int8_activations = activations == "int8";
  return open;
}

Result<engine::EngineOptions> EngineFlags::resolve(const model::HyperParameters& model) const {
  engine::EngineOptions options;
  options.devices = devices == "none" || (devices.empty() && plan_path.empty()) ? "cpu" : devices;
  options.split = split;
  options.force_all = no_guard;
  options.sync = sync == "blocking"  ? runtime::Sync::kBlocking
                 : sync == "predict" ? runtime::Sync::kPredict
                                     : runtime::Sync::kQueue;
  if (!split.empty() && !plan_path.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--plan and --split both say who computes what; give one of them");
  }
  if (tune && (!split.empty() || !plan_path.empty() || no_guard)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--tune finds out who computes what, and {} says so: give one of them",
                      !split.empty()       ? "--split"
                      : !plan_path.empty() ? "--plan"
                                           : "--no-guard");
  }
  options.threads = static_cast<int>(std::max<int64_t>(threads, 0));
  options.context = context;
  if (context < 0) {
    options.context = std::min(model.n_ctx_train, kDefaultContextLimit);
    if (model.sliding_window > 0) {
      options.context = std::min(options.context, model.sliding_window);
    }
  }
  options.batch_rows = std::min(batch, ubatch);
  options.kernels = kernels;
  options.int8_activations = activations == "int8";
  options.cache_folder = cache();
  options.build = build_stamp();
  if (!options.cache_folder.empty()) options.graph_folder = options.cache_folder + "/graphs";
  options.trace = !trace_path.empty();

  const std::string key = !key_type.empty() ? key_type : !value_type.empty() ? value_type : "f32";
  const std::string value = value_type.empty() ? key : value_type;
  ASSIGN_OR_RETURN(options.kv_type, parse_kv_type("--cache-type-k", key));
  ASSIGN_OR_RETURN(const device::KvType value_kv, parse_kv_type("--cache-type-v", value));
  if (value_kv != options.kv_type) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--cache-type-k is {} and --cache-type-v is {}; they must be equal", key,
                      value);
  }
  return options;
}

void SamplingFlags::declare(Flags& flags) {
  flags.begin_group("Sampling");
  flags.integer("-n,--predict,--n-predict", predict, {-1, kMaxContext},
                "Tokens to generate; -1: until the model stops (default: -1)",
                "LLAMA_ARG_N_PREDICT");
  flags.number("--temp,--temperature", temperature, {0, 1000}, "Temperature; 0: greedy");
  flags.integer("--top-k", top_k, {0, kMaxRank}, "Keep the k likeliest; 0: off (default: 40)",
                "LLAMA_ARG_TOP_K");
  flags.number("--top-p", top_p, {0, 1}, "Keep the likeliest that add to p; 1: off");
  flags.number("--min-p", min_p, {0, 1}, "Keep what has this part of the best; 0: off");
  flags.number("--repeat-penalty", repeat_penalty, {0.01, 100},
               "Divide the odds of recent tokens; 1: off");
  flags.integer("--repeat-last-n", repeat_last_n, {-1, kMaxRank},
                "Tokens that count as recent; -1: all (default: 64)");
  flags.integer("-s,--seed", seed, {-1, INT64_MAX}, "Seed; -1: a random one (default: -1)");
  flags.toggle("--ignore-eos", ignore_eos, "Go on after the token that ends an answer");
  flags.toggle("--special", render_special, "Print the names of special tokens");
  flags.texts("-r,--reverse-prompt,--stop", stop, "TEXT",
              "End the answer before this text; may be given several times");
}

Result<engine::GenerateOptions> SamplingFlags::resolve() const {
  engine::GenerateOptions options;
  options.sampling.temperature = static_cast<float>(temperature);
  options.sampling.top_k = static_cast<int>(top_k);
  options.sampling.top_p = static_cast<float>(top_p);
  options.sampling.min_p = static_cast<float>(min_p);
  options.sampling.repeat_penalty = static_cast<float>(repeat_penalty);
  options.sampling.repeat_last_n = static_cast<int>(repeat_last_n);
  options.sampling.seed = seed < 0 ? random_seed() : static_cast<uint64_t>(seed);
  options.max_tokens = predict;
  options.ignore_eos = ignore_eos;
  options.render_special = render_special;
  for (const std::string& text : stop) {
    if (text.empty()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--stop: '' would end every answer at once; give a text");
    }
  }
  options.stop = stop;
  RETURN_IF_ERROR(engine::check(options.sampling));
  return options;
}

}  // namespace troika::cli
