// What `bench` is asked to measure: lists of values, and every combination of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/numbers.h"
#include "troika/base/result.h"
#include "troika/device/kv_layout.h"

namespace troika::cli {

// "512", "1,2,4", "128-512+128" (first to last in steps), "1-8*2" (in factors), or several of these
// joined by commas.
Result<std::vector<int64_t>> parse_list(std::string_view what, std::string_view text,
                                        IntegerRange range);
// The parts of "f32,f16".
std::vector<std::string> split_list(std::string_view text);

// One test: a prompt, some generated tokens, or both, behind `n_depth` tokens of context.
struct BenchTest {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t n_depth = 0;
  std::string name() const;  // "pp512", "tg128 @ d1024", "pp512+tg128"
};

// Settings that need an engine of their own.
struct BenchSetting {
  std::string devices;
  int64_t threads = 0;
  int64_t ubatch = 0;
  device::KvType kv_type = device::KvType::kF32;
};

// The lists as the user gave them.
struct BenchLists {
  std::string n_prompt = "512";
  std::string n_gen = "128";
  std::vector<std::string> prompt_gen;  // "pp,tg" pairs
  std::string n_depth = "0";
  std::string threads;
  std::string ubatch = "512";
  std::string kv_types = "f32";
  std::string devices;
};

struct BenchMatrix {
  std::vector<BenchSetting> settings;
  std::vector<BenchTest> tests;
  // Tokens that the largest test needs.
  int64_t context() const;
};

Result<BenchMatrix> make_matrix(const BenchLists& lists);

}  // namespace troika::cli
