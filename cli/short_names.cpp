#include "cli/short_names.h"

#include <array>

namespace troika::cli {
namespace {

struct ShortName {
  std::string_view short_name;
  std::string_view long_name;
};

constexpr std::array kShortNames = {
    ShortName{"-tb", "--threads-batch"},   ShortName{"-ub", "--ubatch-size"},
    ShortName{"-ctk", "--cache-type-k"},   ShortName{"-ctv", "--cache-type-v"},
    ShortName{"-dev", "--device"},         ShortName{"-sys", "--system-prompt"},
    ShortName{"-cnv", "--conversation"},   ShortName{"-no-cnv", "--no-conversation"},
    ShortName{"-lv", "--verbosity"},       ShortName{"-ngl", "--n-gpu-layers"},
    ShortName{"-fa", "--flash-attn"},      ShortName{"-lm", "--load-mode"},
    ShortName{"-pg", "--prompt-generate"}, ShortName{"-l", "--logit-bias"},
    ShortName{"-hf", "--hf-repo"},         ShortName{"-hff", "--hf-file"},
    ShortName{"-ot", "--override-tensor"}, ShortName{"-sm", "--split-mode"},
    ShortName{"-ts", "--tensor-split"},    ShortName{"-mg", "--main-gpu"},
    ShortName{"-np", "--parallel"},        ShortName{"-mli", "--multiline-input"},
    ShortName{"-md", "--model-draft"},
};

}  // namespace

std::string_view long_name(std::string_view short_name) {
  for (const ShortName& entry : kShortNames) {
    if (entry.short_name == short_name) return entry.long_name;
  }
  return {};
}

std::vector<std::string> short_names(std::string_view long_name) {
  std::vector<std::string> found;
  for (const ShortName& entry : kShortNames) {
    if (entry.long_name == long_name) found.emplace_back(entry.short_name);
  }
  return found;
}

}  // namespace troika::cli
