// What a GGUF header says of its tokenizer.
#pragma once

#include "troika/base/result.h"
#include "troika/model/gguf.h"
#include "troika/model/tokenizer.h"

namespace troika::model {

// Checks kinds, lengths and ranges. Takes the lists of tokens and merges out of `header`, which can
// be millions of bytes long; the keys of lists that it took are gone from `header` afterwards.
Result<TokenizerData> take_tokenizer_data(GgufHeader& header);

}  // namespace troika::model
