// Paper: figures that others printed, as data: what was run, what came out, and where it stands.
// Plain JSON (published/*.json; published/schema.json), read strictly.
//
// Nothing here is simulated; troika/reproduce does that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::published {

inline constexpr int kPaperVersion = 1;
inline constexpr size_t kMaxCases = 400;
inline constexpr int64_t kMaxTokens = int64_t{1} << 17;

// What a figure is of. Over several shapes and prompts: the mean of the runs, or the greatest where
// the name ends in Peak.
enum class Metric {
  kOperatorUs,        // one product on one unit, by itself
  kOperatorShare,     // the unit's part of one product
  kOperatorGain,      // of one product: time of `against` / time
  kOperandOrderGain,  // of one product: time with the weight in place / time in the better order
  kMemoryGbps,        // what units reach together
  kCoRunSlowdown,     // sum of what units reach alone / what they reach together
  kRetainedSum,       // speeds of units beside each other as parts of those alone, added
  kBuildMs,           // static graphs that a prefill waits for
  kTtftS,             // seconds of a prefill
  kPrefillTokS,       // its tokens per second
  kPrefillTokSPeak,
  kDecodeTokS,   // mean over the generated tokens
  kPrefillGain,  // of a prefill: time of `against` / time
  kPrefillGainPeak,
  kDecodeGain,           // of a generated token: time of `against` / time
  kBoundGain,            // of a prefill: time / least time that the chip could need
  kProductShare,         // the unit's part of the arithmetic of a prefill's products
  kBalanceShare,         // of the same, where each product is so divided that all end together
  kDecodeShare,          // the unit's part of the weights that are read for a token
  kOtherWorkShare,       // part of a prefill's time that is no product
  kLayerMs,              // of a prefill: time / number of layers
  kPrefillPowerW,        // of the whole chip
  kUnitPowerW,           // of a unit above idle, while it works in a prefill
  kTokenEnergyJ,         // of a generated token
  kEnergySaving,         // prompt and answer: 100 (1 - energy / energy of `against`)
  kPrefillEnergySaving,  // the same of the prompt
};
std::string_view to_string(Metric metric);  // "operator_us"
// How the metric's values are printed: "us", "share", "times", "%".
std::string_view unit_of(Metric metric);

// Another program that uses a unit at the same time.
struct Load {
  std::string unit;
  double part = 0;  // of the unit's time
  double gbps = 0;  // of the memory
};

// What was run. Which fields count depends on the metric.
struct Run {
  std::string soc;
  std::string stack = "default";
  std::string strategy;
  std::string unit;                // whose share or power it is
  std::vector<std::string> units;  // of what is said about the chip itself
  // One product.
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t tokens = 0;
  // A model.
  std::vector<std::string> shapes;
  std::vector<int64_t> prompts;
  int64_t output = 32;
  std::string sync = "queue";  // "predict", "blocking"
  std::string plan_sync;       // what the plan was made for; empty: the same
  std::optional<Load> load;
};

// How a figure is known.
enum class Mark {
  kPrinted,  // by the paper or its artifact
  kDerived,  // from printed figures
};
std::string_view to_string(Mark mark);

struct Case {
  std::string name;  // unique in the paper
  Metric metric = Metric::kTtftS;
  Run input;
  std::optional<Run> against;  // what a gain or a saving is over
  std::string input_text;      // the JSON of both, as in the file; empty if there is none
  std::string against_text;
  double published = 0;
  std::optional<double> published_to;  // a range: any value from `published` to it
  Mark mark = Mark::kPrinted;
  // The fit of descriptions sees it: it proves nothing.
  bool calibrated = false;
  // A description holds the figure itself: it proves nothing either.
  bool described = false;
  std::string why_off;   // why what is simulated is far from it; empty: nobody knows, or it is not
  std::string left_out;  // why it is not simulated; empty: it is
  std::string source;
};

struct Paper {
  std::string name;   // "heteroinfer"
  std::string title;  // for people
  std::vector<Case> cases;
};

// Figures of any bytes: kInvalidData naming the path of the field, in bounded time and memory.
// kUnsupported for another version.
Result<Paper> from_json(std::string_view text);

}  // namespace troika::published
