#include "troika/model/hyper_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

namespace troika::model {
namespace {

constexpr std::array<std::string_view, 1> kArchitectures = {"llama"};

// Far above any model, and small enough that products of two fit 64 bits.
constexpr uint64_t kMaxWidth = uint64_t{1} << 24;
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxHeads = 65536;
constexpr uint64_t kMaxContext = uint64_t{1} << 30;
constexpr uint64_t kMaxHeadDim = 4096;

// Look-up of the keys of one architecture, with range checks.
class Keys {
 public:
  explicit Keys(const GgufHeader& header, std::string architecture)
      : header_(header), architecture_(std::move(architecture)) {}

  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  Result<std::optional<int64_t>> optional_uint(std::string_view key, uint64_t low,
                                               uint64_t high) const {
    ASSIGN_OR_RETURN(const std::optional<uint64_t> value, header_.get_uint(full(key)));
    if (!value) return std::optional<int64_t>();
    if (*value < low || *value > high) {
      return make_error(ErrorCode::kInvalidData, "metadata '{}' is {}; {} to {} is allowed",
                        full(key), *value, low, high);
    }
    return std::optional<int64_t>(static_cast<int64_t>(*value));
  }

  Result<int64_t> required_uint(std::string_view key, uint64_t low, uint64_t high) const {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, optional_uint(key, low, high));
    if (!value) return missing(key);
    return *value;
  }

  // A finite number above 0.
  Result<std::optional<float>> optional_positive(std::string_view key) const {
    ASSIGN_OR_RETURN(const std::optional<double> value, header_.get_float(full(key)));
    if (!value) return std::optional<float>();
    const auto number = static_cast<float>(*value);
    if (!std::isfinite(number) || number <= 0) {
      return make_error(ErrorCode::kInvalidData, "metadata '{}' is {}; a number above 0 is needed",
                        full(key), *value);
    }
    return std::optional<float>(number);
  }

  tl::unexpected<Error> missing(std::string_view key) const {
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is missing", full(key));
  }

  const GgufHeader& header() const { return header_; }

 private:
  const GgufHeader& header_;
  std::string architecture_;
};

Status read_sizes(const Keys& keys, HyperParameters& hp) {
  ASSIGN_OR_RETURN(hp.n_ctx_train, keys.required_uint("context_length", 1, kMaxContext));
  ASSIGN_OR_RETURN(hp.hidden, keys.required_uint("embedding_length", 1, kMaxWidth));
  ASSIGN_OR_RETURN(hp.n_layers, keys.required_uint("block_count", 1, kMaxLayers));
  ASSIGN_OR_RETURN(hp.ffn, keys.required_uint("feed_forward_length", 1, kMaxWidth));
  ASSIGN_OR_RETURN(const auto n_vocab, keys.optional_uint("vocab_size", 1, kMaxWidth));
  hp.n_vocab = n_vocab.value_or(0);
  ASSIGN_OR_RETURN(const auto eps, keys.optional_positive("attention.layer_norm_rms_epsilon"));
  if (!eps) return keys.missing("attention.layer_norm_rms_epsilon");
  hp.norm_eps = *eps;
  ASSIGN_OR_RETURN(const auto window,
                   keys.optional_uint("attention.sliding_window", 0, kMaxContext));
  hp.sliding_window = window.value_or(0);
  return {};
}

Status read_heads(const Keys& keys, HyperParameters& hp) {
  ASSIGN_OR_RETURN(hp.n_heads, keys.required_uint("attention.head_count", 1, kMaxHeads));
  ASSIGN_OR_RETURN(const auto n_kv_heads,
                   keys.optional_uint("attention.head_count_kv", 1, kMaxHeads));
  hp.n_kv_heads = n_kv_heads.value_or(hp.n_heads);
  if (hp.n_kv_heads > hp.n_heads || hp.n_heads % hp.n_kv_heads != 0) {
    return make_error(
        ErrorCode::kInvalidData,
        "{} heads cannot share {} KV heads: the first must be a multiple of the second", hp.n_heads,
        hp.n_kv_heads);
  }
  ASSIGN_OR_RETURN(const auto key_length,
                   keys.optional_uint("attention.key_length", 1, kMaxHeadDim));
  ASSIGN_OR_RETURN(const auto value_length,
                   keys.optional_uint("attention.value_length", 1, kMaxHeadDim));
  if (!key_length && hp.hidden % hp.n_heads != 0) {
    return make_error(ErrorCode::kInvalidData,
                      "the hidden size {} is not a multiple of the {} heads, and '{}' is missing",
                      hp.hidden, hp.n_heads, keys.full("attention.key_length"));
  }
  hp.head_dim = key_length ? *key_length : hp.hidden / hp.n_heads;
  if (value_length && *value_length != hp.head_dim) {
    return make_error(ErrorCode::kUnsupported,
                      "keys have {} dimensions and values {}; only equal ones are supported",
                      hp.head_dim, *value_length);
  }
  if (hp.head_dim % 2 != 0 || hp.head_dim > static_cast<int64_t>(kMaxHeadDim)) {
    return make_error(ErrorCode::kInvalidData,
                      "heads of {} dimensions; an even number up to {} is needed", hp.head_dim,
                      kMaxHeadDim);
  }
  return {};
}

Status read_rope_scaling(const Keys& keys, HyperParameters& hp) {
  ASSIGN_OR_RETURN(const auto type, keys.header().get_string(keys.full("rope.scaling.type")));
  ASSIGN_OR_RETURN(auto factor, keys.optional_positive("rope.scaling.factor"));
  if (!factor) {
    ASSIGN_OR_RETURN(factor, keys.optional_positive("rope.scale_linear"));
  }
  const std::string name = type.value_or(factor ? "linear" : "none");
  if (name == "none") return {};
  if (name != "linear") {
    return make_error(ErrorCode::kUnsupported,
                      "RoPE scaling '{}' is not supported; none, linear and the tensor "
                      "rope_freqs.weight are",
                      printable(name));
  }
  hp.rope_scale_factor = factor.value_or(1.0f);
  if (hp.rope_scale_factor != 1.0f) hp.rope_scaling = RopeScaling::kLinear;
  return {};
}

Status read_rope(const Keys& keys, HyperParameters& hp) {
  ASSIGN_OR_RETURN(const auto rope_dim, keys.optional_uint("rope.dimension_count", 0, kMaxHeadDim));
  hp.rope_dim = rope_dim.value_or(hp.head_dim);
  if (hp.rope_dim < 2 || hp.rope_dim % 2 != 0 || hp.rope_dim > hp.head_dim) {
    return make_error(
        ErrorCode::kInvalidData,
        "metadata '{}' is {}; an even number from 2 to the {} dimensions of a head is "
        "needed",
        keys.full("rope.dimension_count"), hp.rope_dim, hp.head_dim);
  }
  ASSIGN_OR_RETURN(const auto base, keys.optional_positive("rope.freq_base"));
  hp.rope_base = base.value_or(10000.0f);
  return read_rope_scaling(keys, hp);
}

// Variations of the architecture that change what it computes. A value that changes nothing (0
// experts, a scale of 1) is fine.
Status refuse_variations(const Keys& keys) {
  ASSIGN_OR_RETURN(const auto experts, keys.optional_uint("expert_count", 0, kMaxWidth));
  if (experts.value_or(0) > 0) {
    return make_error(ErrorCode::kUnsupported,
                      "a mixture of {} experts is not supported; only dense models are", *experts);
  }
  for (const std::string_view key :
       {"attention.scale", "attention.clamp_kqv", "rope.scaling.attn_factor", "logit_scale",
        "residual_scale", "embedding_scale"}) {
    ASSIGN_OR_RETURN(const auto value, keys.header().get_float(keys.full(key)));
    const bool off = key == "attention.scale" || key == "attention.clamp_kqv";
    if (value && *value != (off ? 0.0 : 1.0)) {
      return make_error(ErrorCode::kUnsupported, "metadata '{}' = {} is not supported",
                        keys.full(key), *value);
    }
  }
  ASSIGN_OR_RETURN(const auto causal, keys.header().get_bool(keys.full("attention.causal")));
  if (!causal.value_or(true)) {
    return make_error(ErrorCode::kUnsupported, "attention that is not causal is not supported");
  }
  return {};
}

}  // namespace

std::string supported_architectures() {
  std::string names;
  for (const std::string_view name : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

Result<HyperParameters> read_hyper_parameters(const GgufHeader& header) {
  HyperParameters hp;
  ASSIGN_OR_RETURN(const auto architecture, header.get_string("general.architecture"));
  if (!architecture) {
    return make_error(ErrorCode::kInvalidData, "metadata 'general.architecture' is missing");
  }
  hp.architecture = *architecture;
  if (std::find(kArchitectures.begin(), kArchitectures.end(), hp.architecture) ==
      kArchitectures.end()) {
    return make_error(ErrorCode::kUnsupported, "unsupported architecture '{}'; supported: {}",
                      printable(hp.architecture), supported_architectures());
  }
  ASSIGN_OR_RETURN(const auto name, header.get_string("general.name"));
  hp.name = name.value_or("");
  const Keys keys(header, hp.architecture);
  RETURN_IF_ERROR(refuse_variations(keys));
  RETURN_IF_ERROR(read_sizes(keys, hp));
  RETURN_IF_ERROR(read_heads(keys, hp));
  RETURN_IF_ERROR(read_rope(keys, hp));
  return hp;
}

}  // namespace troika::model
