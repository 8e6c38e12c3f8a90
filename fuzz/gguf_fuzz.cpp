// A GGUF file of any bytes is either an error or a model that keeps every promise of model.h.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "troika/model/gguf.h"
#include "troika/model/hyper_parameters.h"
#include "troika/model/model.h"
#include "troika/model/quantize.h"

namespace {

using namespace troika::model;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_header(const GgufHeader& header, size_t file_bytes) {
  for (const auto& [key, value] : header.metadata) {
    require(to_display(value, 4).size() < 2000 + 4 * key.size());
  }
  for (const GgufTensor& t : header.tensors) {
    require(!t.dims.empty() && t.dims.size() <= 4);
    require(t.file_offset <= file_bytes && t.bytes <= file_bytes - t.file_offset);
  }
}

void check_model(const Model& model) {
  const HyperParameters& hp = model.hyper_parameters();
  require(hp.n_layers > 0 && hp.n_heads % hp.n_kv_heads == 0 && hp.head_dim % 2 == 0);
  require(hp.norm_eps > 0 && hp.rope_base > 0 && hp.rope_dim <= hp.head_dim);
  require(model.tokenizer().vocab_size() == hp.n_vocab);
  require(model.find("token_embd.weight")->rows == hp.n_vocab);
  for (const Weight& w : model.weights()) {
    require(row_is_finite(w.type, w.data, w.cols));
    require(row_is_finite(w.type, w.data + (w.rows - 1) * w.row_bytes(), w.cols));
  }
  for (const TokenId id : model.tokenizer().encode("Hello, world <s>", true)) {
    require(id >= 0 && id < hp.n_vocab);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto source = memory_source(std::as_bytes(std::span(data, size)));
  const auto header = read_gguf_header(*source);
  if (!header) {
    require(!header.error().message.empty());
    return 0;
  }
  check_header(*header, size);
  const auto model = Model::load(*source, "fuzz.gguf", LoadOptions{});
  if (model) check_model(*model);
  return 0;
}
