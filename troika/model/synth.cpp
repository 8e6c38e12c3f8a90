#include "troika/model/synth.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "troika/model/byte_source.h"
#include "troika/model/gguf_writer.h"
#include "troika/model/hyper_parameters.h"
#include "troika/model/output_file.h"
#include "troika/model/random_weights.h"
#include "troika/model/synthetic_vocabulary.h"
#include "troika/model/tensor_table.h"

namespace troika::model {
namespace {

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";

// general.file_type: the format's number for "most tensors have this type".
uint32_t file_type(const WeightMix& mix) {
  if (mix.better) return 15;
  switch (mix.type) {
    case TensorType::kF32:
      return 0;
    case TensorType::kF16:
      return 1;
    case TensorType::kQ4_0:
      return 2;
    case TensorType::kQ4_1:
      return 3;
    case TensorType::kQ8_0:
      return 7;
    case TensorType::kQ4_K:
      return 14;
    case TensorType::kQ6_K:
      return 18;
    case TensorType::kBF16:
      return 32;
  }
  return 0;
}

void add_hyper_parameters(const ModelShape& shape, const WeightMix& mix, GgufWriter& out) {
  const auto u32 = [](int64_t value) { return static_cast<uint32_t>(value); };
  out.add_string("general.architecture", "llama");
  out.add_string("general.name", fmt::format("synthetic {}", shape.name));
  out.add_uint32("general.file_type", file_type(mix));
  out.add_uint32("general.quantization_version", 2);
  out.add_uint32("llama.vocab_size", u32(shape.n_vocab));
  out.add_uint32("llama.context_length", u32(shape.n_ctx));
  out.add_uint32("llama.embedding_length", u32(shape.hidden));
  out.add_uint32("llama.block_count", u32(shape.n_layers));
  out.add_uint32("llama.feed_forward_length", u32(shape.ffn));
  out.add_uint32("llama.attention.head_count", u32(shape.n_heads));
  out.add_uint32("llama.attention.head_count_kv", u32(shape.n_kv_heads));
  if (shape.n_heads * shape.head_dim != shape.hidden) {
    out.add_uint32("llama.attention.key_length", u32(shape.head_dim));
    out.add_uint32("llama.attention.value_length", u32(shape.head_dim));
  }
  out.add_uint32("llama.rope.dimension_count", u32(shape.head_dim));
  out.add_float("llama.rope.freq_base", shape.rope_base);
  out.add_float("llama.attention.layer_norm_rms_epsilon", shape.norm_eps);
}

Status add_vocabulary(const ModelShape& shape, GgufWriter& out) {
  ASSIGN_OR_RETURN(const SyntheticVocabulary vocabulary, make_synthetic_vocabulary(shape.n_vocab));
  out.add_string("tokenizer.ggml.model", "gpt2");
  out.add_string("tokenizer.ggml.pre", "gpt-2");
  out.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  out.add_int32s("tokenizer.ggml.token_type", vocabulary.types);
  out.add_strings("tokenizer.ggml.merges", vocabulary.merges);
  out.add_uint32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(vocabulary.bos));
  out.add_uint32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(vocabulary.eos));
  out.add_bool("tokenizer.ggml.add_bos_token", true);
  out.add_bool("tokenizer.ggml.add_eos_token", false);
  out.add_string("tokenizer.chat_template", kChatTemplate);
  return {};
}

HyperParameters sizes_of(const ModelShape& shape) {
  HyperParameters hp;
  hp.architecture = "llama";
  hp.n_vocab = shape.n_vocab;
  hp.hidden = shape.hidden;
  hp.n_layers = shape.n_layers;
  hp.n_heads = shape.n_heads;
  hp.n_kv_heads = shape.n_kv_heads;
  hp.head_dim = shape.head_dim;
  hp.ffn = shape.ffn;
  hp.rope_dim = shape.head_dim;
  return hp;
}

Status add_tensors(const ModelShape& shape, const WeightMix& mix, GgufWriter& out) {
  for (const ExpectedTensor& want : expected_tensors(sizes_of(shape))) {
    if (want.name == "output.weight" && shape.tied) continue;
    if (want.name == "rope_freqs.weight" && !shape.llama3_scaling) continue;
    const TensorType type =
        want.vector ? TensorType::kF32 : mix.type_of(want.name, shape.n_layers, shape.tied);
    const int block = traits(type).block_weights;
    if (want.cols % block != 0) {
      return make_error(ErrorCode::kInvalidArgument,
                        "'{}' has rows of {} weights; {} needs a multiple of {}: change the shape "
                        "or use F16, BF16 or F32",
                        want.name, want.cols, traits(type).name, block);
    }
    out.add_tensor(want.name, type, want.vector ? 0 : want.rows, want.cols);
  }
  return {};
}

Result<GgufWriter> layout(const SynthOptions& options, bool with_vocabulary) {
  RETURN_IF_ERROR(check_shape(options.shape));
  GgufWriter out;
  add_hyper_parameters(options.shape, options.mix, out);
  if (with_vocabulary) RETURN_IF_ERROR(add_vocabulary(options.shape, out));
  RETURN_IF_ERROR(add_tensors(options.shape, options.mix, out));
  return out;
}

// Root mean square of a matrix's weights, such that activations keep theirs: x W^T of K inputs of
// size 1 has size 1 at 1/sqrt(K).
float weight_scale(const GgufWriter::Tensor& tensor, const ModelShape& shape) {
  const float keep = 1.0f / std::sqrt(static_cast<float>(tensor.cols));
  if (tensor.name.ends_with("attn_output.weight") || tensor.name.ends_with("ffn_down.weight")) {
    // So that all layers together add more than the embedding, and the next token depends on the
    // tokens before it rather than repeats the last.
    return 4 * keep / std::sqrt(2.0f * static_cast<float>(shape.n_layers));
  }
  const bool is_output =
      tensor.name == "output.weight" || (shape.tied && tensor.name == "token_embd.weight");
  if (is_output) return 4 * keep;  // logits spread as those of trained models
  if (tensor.name == "token_embd.weight") return 1;
  return keep;
}

// Llama 3.1's stretching of long waves: none below 1/4 of the old context of 8192 tokens, the whole
// factor above it, a mixture between.
std::vector<float> rope_factors(const ModelShape& shape) {
  constexpr double kOldContext = 8192;
  constexpr double kLowFrequency = 1;
  constexpr double kHighFrequency = 4;
  constexpr double kTwoPi = 6.283185307179586;
  std::vector<float> factors;
  for (int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(shape.head_dim);
    const double wave = kTwoPi * std::pow(static_cast<double>(shape.rope_base), exponent);
    const double turns = kOldContext / wave;
    const double mix =
        std::clamp((turns - kLowFrequency) / (kHighFrequency - kLowFrequency), 0.0, 1.0);
    const double factor = 1.0 / ((1.0 - mix) / static_cast<double>(shape.llama3_factor) + mix);
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

class TensorWriter {
 public:
  TensorWriter(const SynthOptions& options, const GgufWriter& gguf, OutputFile& file)
      : options_(options), gguf_(gguf), file_(file), data_offset_(file.size()) {}

  Status write_all() {
    for (const GgufWriter::Tensor& tensor : gguf_.tensors()) {
      RETURN_IF_ERROR(write(tensor));
      const uint64_t end = tensor.offset + tensor.bytes;
      const uint64_t padded =
          (end + GgufWriter::kAlignment - 1) / GgufWriter::kAlignment * GgufWriter::kAlignment;
      RETURN_IF_ERROR(file_.write_zeros(padded - end));
    }
    return {};
  }

 private:
  Status write(const GgufWriter::Tensor& tensor) {
    if (tensor.name == "rope_freqs.weight") {
      const std::vector<float> factors = rope_factors(options_.shape);
      return file_.write(std::as_bytes(std::span(factors)));
    }
    RandomWeights random(options_.seed, tensor.name);
    if (tensor.name.ends_with("norm.weight")) {
      std::vector<float> norm(static_cast<size_t>(tensor.cols));
      random.fill_norm(norm);
      return file_.write(std::as_bytes(std::span(norm)));
    }
    const TypeTraits& t = traits(tensor.type);
    const int64_t per_write = int64_t{1} << 17;  // weights; a multiple of every block
    std::vector<std::byte> buffer(static_cast<size_t>(row_bytes(tensor.type, per_write)));
    const float scale = weight_scale(tensor, options_.shape);
    int64_t left = tensor.rows * tensor.cols;
    while (left > 0) {
      const int64_t n = std::min(left, per_write);
      const auto bytes = static_cast<size_t>(n / t.block_weights * t.block_bytes);
      random.fill(tensor.type, scale, std::span(buffer.data(), bytes));
      RETURN_IF_ERROR(file_.write(std::span(buffer.data(), bytes)));
      RETURN_IF_ERROR(report());
      left -= n;
    }
    return {};
  }

  Status report() {
    if (options_.progress && !options_.progress(file_.size() - data_offset_, gguf_.data_bytes())) {
      return make_error(ErrorCode::kCancelled, "writing was stopped");
    }
    return {};
  }

  const SynthOptions& options_;
  const GgufWriter& gguf_;
  OutputFile& file_;
  uint64_t data_offset_;
};

// A file of which only the header can be read.
class HeaderSource final : public ByteSource {
 public:
  HeaderSource(std::vector<std::byte> header, uint64_t data_bytes)
      : header_(std::move(header)), size_(header_.size() + data_bytes) {}

  uint64_t size() const override { return size_; }
  Status read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) {
      return make_error(ErrorCode::kIo, "an outline ends before byte {}", offset + out.size());
    }
    std::fill(out.begin(), out.end(), std::byte{0});
    if (offset >= header_.size()) return {};
    const size_t n = std::min<uint64_t>(out.size(), header_.size() - offset);
    std::copy_n(header_.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return {};
  }

 private:
  std::vector<std::byte> header_;
  uint64_t size_;
};

}  // namespace

Result<Model> outline_model(const SynthOptions& options) {
  ASSIGN_OR_RETURN(const GgufWriter gguf, layout(options, true));
  const HeaderSource source(gguf.header(), gguf.data_bytes());
  LoadOptions load;
  load.sizes_only = true;
  return Model::load(source, options.shape.name, load);
}

Result<uint64_t> synthetic_model_bytes(const SynthOptions& options) {
  ASSIGN_OR_RETURN(const GgufWriter gguf, layout(options, false));
  return gguf.data_bytes();
}

Status write_synthetic_model(const std::string& path, const SynthOptions& options) {
  ASSIGN_OR_RETURN(const GgufWriter gguf, layout(options, true));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  RETURN_IF_ERROR(file.write(gguf.header()));
  RETURN_IF_ERROR(TensorWriter(options, gguf, file).write_all());
  return file.commit();
}

}  // namespace troika::model
