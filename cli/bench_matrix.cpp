#include "cli/bench_matrix.h"

#include <algorithm>

#include "cli/options.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxCombinations = 10'000;
constexpr IntegerRange kTokens{0, int64_t{1} << 24};

// One part of a list: a number, or first-last with +step or *factor.
Status append_part(std::string_view what, std::string_view part, IntegerRange range,
                   std::vector<int64_t>& out) {
  const size_t dash = part.find('-', 1);
  if (dash == std::string_view::npos) {
    ASSIGN_OR_RETURN(const int64_t value, parse_integer(what, part, range));
    out.push_back(value);
    return {};
  }
  std::string_view last_text = part.substr(dash + 1);
  int64_t step = 1;
  bool multiply = false;
  if (const size_t mark = last_text.find_first_of("+*"); mark != std::string_view::npos) {
    multiply = last_text[mark] == '*';
    ASSIGN_OR_RETURN(step, parse_integer(what, last_text.substr(mark + 1),
                                         {multiply ? 2 : 1, int64_t{1} << 24}));
    last_text = last_text.substr(0, mark);
  }
  ASSIGN_OR_RETURN(const int64_t first, parse_integer(what, part.substr(0, dash), range));
  ASSIGN_OR_RETURN(const int64_t last, parse_integer(what, last_text, range));
  if (last < first || (multiply && first == 0)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: {} is no range; give first-last, first-last+step or first-last*factor",
                      what, in_quotes(part));
  }
  for (int64_t value = first; value <= last; value = multiply ? value * step : value + step) {
    if (out.size() >= kMaxCombinations) {
      return make_error(ErrorCode::kInvalidArgument, "{}: {} gives more than {} values", what,
                        in_quotes(part), kMaxCombinations);
    }
    out.push_back(value);
  }
  return {};
}

Result<std::vector<BenchTest>> make_tests(const BenchLists& lists) {
  ASSIGN_OR_RETURN(const auto prompts, parse_list("--n-prompt", lists.n_prompt, kTokens));
  ASSIGN_OR_RETURN(const auto gens, parse_list("--n-gen", lists.n_gen, kTokens));
  ASSIGN_OR_RETURN(const auto depths, parse_list("--n-depth", lists.n_depth, kTokens));
  std::vector<BenchTest> tests;
  for (int64_t depth : depths) {
    for (int64_t n : prompts) {
      if (n > 0) tests.push_back({n, 0, depth});
    }
    for (int64_t n : gens) {
      if (n > 0) tests.push_back({0, n, depth});
    }
    for (const std::string& pair : lists.prompt_gen) {
      ASSIGN_OR_RETURN(const auto both, parse_list("-pg", pair, {1, kTokens.max}));
      if (both.size() != 2) {
        return make_error(ErrorCode::kInvalidArgument,
                          "-pg: {} is not a pair; give prompt,generated as in -pg 512,128",
                          in_quotes(pair));
      }
      tests.push_back({both[0], both[1], depth});
    }
  }
  if (tests.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "nothing to measure; give -p, -n or -pg with a number above 0");
  }
  return tests;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<int64_t>> parse_list(std::string_view what, std::string_view text,
                                        IntegerRange range) {
  std::vector<int64_t> values;
  for (const std::string& part : split_list(text)) {
    RETURN_IF_ERROR(append_part(what, part, range, values));
  }
  return values;
}

std::string BenchTest::name() const {
  std::string text;
  if (n_prompt > 0) text = fmt::format("pp{}", n_prompt);
  if (n_gen > 0) text += fmt::format("{}tg{}", text.empty() ? "" : "+", n_gen);
  if (n_depth > 0) text += fmt::format(" @ d{}", n_depth);
  return text;
}

int64_t BenchMatrix::context() const {
  int64_t most = 0;
  for (const BenchTest& test : tests) {
    most = std::max(most, test.n_depth + test.n_prompt + test.n_gen);
  }
  return most;
}

Result<BenchMatrix> make_matrix(const BenchLists& lists) {
  BenchMatrix matrix;
  ASSIGN_OR_RETURN(matrix.tests, make_tests(lists));
  std::vector<int64_t> threads = {0};
  if (!lists.threads.empty()) {
    ASSIGN_OR_RETURN(threads, parse_list("--threads", lists.threads, kThreadRange));
  }
  ASSIGN_OR_RETURN(const auto ubatches, parse_list("--ubatch-size", lists.ubatch, kPassRange));
  // A device list holds commas of its own, so several of them are given as -dev a -dev b in one run
  // of the program each; here it is one value.
  for (int64_t count : threads) {
    for (int64_t ubatch : ubatches) {
      for (const std::string& type : split_list(lists.kv_types)) {
        ASSIGN_OR_RETURN(const device::KvType kv_type, parse_kv_type("--cache-type-k", type));
        matrix.settings.push_back({lists.devices, std::max<int64_t>(count, 0), ubatch, kv_type});
      }
    }
  }
  if (matrix.settings.size() * matrix.tests.size() > kMaxCombinations) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} combinations are asked for; at most {} in one run",
                      matrix.settings.size() * matrix.tests.size(), kMaxCombinations);
  }
  return matrix;
}

}  // namespace troika::cli
