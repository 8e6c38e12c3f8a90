// Which tokens end what a model says, and which names mean a control token whatever type the
// file gives: GGUF names only one end token, models have several.
#pragma once

#include <string_view>

namespace troika::model {

// True for the names of tokens that end a turn or a document: "<|im_end|>", "</s>", ...
bool names_end_of_generation(std::string_view name);

}  // namespace troika::model
