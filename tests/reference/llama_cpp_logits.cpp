// Prints llama.cpp's logits, one line for each position of the token ids that are given: a second
// opinion on llama_reference.py. Not part of Troika's build; README.md tells how to compile it.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "llama.h"

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s MODEL.gguf ID...\n", argv[0]), 1;
  std::vector<llama_token> ids;
  for (int i = 2; i < argc; ++i) ids.push_back(std::atoi(argv[i]));
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) return std::fprintf(stderr, "llama.cpp does not load %s\n", argv[1]), 2;

  llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_batch = params.n_ubatch = 256;
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  llama_context* context = llama_init_from_model(model, params);
  llama_batch batch = llama_batch_init(static_cast<int>(ids.size()), 0, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.token[i] = ids[i];
    batch.pos[i] = static_cast<llama_pos>(i);
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  batch.n_tokens = static_cast<int>(ids.size());
  if (llama_decode(context, batch) != 0) return std::fprintf(stderr, "decode failed\n"), 3;
  const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (size_t i = 0; i < ids.size(); ++i) {
    const float* logits = llama_get_logits_ith(context, static_cast<int>(i));
    for (int v = 0; v < vocab; ++v)
      std::printf(v ? " %.7g" : "%.7g", static_cast<double>(logits[v]));
    std::printf("\n");
  }
  return 0;
}
