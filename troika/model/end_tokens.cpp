#include "troika/model/end_tokens.h"

#include <algorithm>
#include <iterator>

namespace troika::model {
namespace {

constexpr std::string_view kEndNames[] = {
    // ends of turns, of documents and of tool calls
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    // code models go on with the next file or repository after these
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

}  // namespace

bool names_end_of_generation(std::string_view name) {
  // Asked of every token of a vocabulary, so most are to be told apart by their first byte.
  if (name.empty() || (name[0] != '<' && name[0] != '[' && name[0] != '_')) return false;
  return std::find(std::begin(kEndNames), std::end(kEndNames), name) != std::end(kEndNames);
}

}  // namespace troika::model
