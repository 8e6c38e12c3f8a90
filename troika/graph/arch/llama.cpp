// Llama 2, 3 and 3.x, Mistral, SmolLM: pre-norm, grouped-query attention with RoPE, SwiGLU MLP.
#include <cmath>

#include "troika/graph/arch/architectures.h"
#include "troika/graph/builder.h"

namespace troika::graph {
namespace {

// Angle per position step of each pair: base^(-2j / rope_dim), divided by the pair's factor.
std::vector<double> inverse_frequencies(const model::HyperParameters& hyper) {
  std::vector<double> inv_freq(static_cast<size_t>(hyper.rope_dim / 2));
  for (size_t j = 0; j < inv_freq.size(); ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(hyper.rope_dim);
    double angle = std::pow(static_cast<double>(hyper.rope_base), exponent);
    angle /= hyper.rope_scale_factor;
    if (!hyper.rope_factors.empty()) angle /= hyper.rope_factors[j];
    inv_freq[j] = angle;
  }
  return inv_freq;
}

HeadShape head_shape(const model::HyperParameters& hyper, int64_t n_heads) {
  HeadShape heads;
  heads.n_heads = n_heads;
  heads.group = n_heads / hyper.n_kv_heads;
  heads.head_dim = hyper.head_dim;
  heads.rope_dim = hyper.rope_dim;
  heads.rope_pairs = model::RopePairs::kAdjacent;
  heads.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hyper.head_dim)));
  return heads;
}

}  // namespace

Result<Graph> build_llama(const model::Model& model) {
  const model::HyperParameters& hyper = model.hyper_parameters();
  const HeadShape query = head_shape(hyper, hyper.n_heads);
  const HeadShape key = head_shape(hyper, hyper.n_kv_heads);

  Builder b(model);
  b.enter(Stage::kInput, -1);
  TensorId x = b.embed("token_embd.weight");
  const TensorId table = b.rope_table(inverse_frequencies(hyper));

  for (int32_t layer = 0; layer < hyper.n_layers; ++layer) {
    const auto name = [layer](std::string_view part) {
      return fmt::format("blk.{}.{}.weight", layer, part);
    };
    b.enter(Stage::kG1, layer);
    const TensorId normed = b.rms_norm(x, name("attn_norm"), hyper.norm_eps);
    TensorId q = b.mat_mul(normed, name("attn_q"), "q");
    TensorId k = b.mat_mul(normed, name("attn_k"), "k");
    const TensorId v = b.mat_mul(normed, name("attn_v"), "v");
    q = b.rope(q, table, query);
    k = b.rope(k, table, key);
    const TensorId kv = b.kv_write(k, v, key);

    b.enter(Stage::kAttention, layer);
    const TensorId attended = b.attention(q, kv, query);

    b.enter(Stage::kG2, layer);
    x = b.add(x, b.mat_mul(attended, name("attn_output"), "o"));
    const TensorId mlp_in = b.rms_norm(x, name("ffn_norm"), hyper.norm_eps);
    const TensorId gate = b.mat_mul(mlp_in, name("ffn_gate"), "gate");
    const TensorId up = b.mat_mul(mlp_in, name("ffn_up"), "up");
    x = b.add(x, b.mat_mul(b.silu_mul(gate, up), name("ffn_down"), "down"));
  }

  b.enter(Stage::kHead, -1);
  const TensorId wanted = b.gather_rows(x);
  const TensorId normed = b.rms_norm(wanted, "output_norm.weight", hyper.norm_eps);
  const bool tied = model.find("output.weight") == nullptr;
  return b.finish(b.mat_mul(normed, tied ? "token_embd.weight" : "output.weight", "logits"));
}

}  // namespace troika::graph
