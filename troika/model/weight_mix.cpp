#include "troika/model/weight_mix.h"

#include <algorithm>
#include <charconv>

#include "troika/model/gguf.h"

namespace troika::model {
namespace {

constexpr std::string_view kMixName = "Q4_K_M";
constexpr std::string_view kLayerPrefix = "blk.";

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// "blk.12.attn_v.weight": 12; no layer: -1.
int64_t layer_of(std::string_view name) {
  int64_t layer = -1;
  if (name.substr(0, kLayerPrefix.size()) == kLayerPrefix) {
    std::from_chars(name.data() + kLayerPrefix.size(), name.data() + name.size(), layer);
  }
  return layer;
}

// The first and the last eighth of the layers, and every third between.
bool is_better_layer(int64_t layer, int64_t n_layers) {
  const int64_t eighth = n_layers / 8;
  return layer < eighth || layer >= n_layers - eighth || (layer - eighth) % 3 == 2;
}

}  // namespace

TensorType WeightMix::type_of(std::string_view name, int64_t n_layers, bool tied) const {
  if (!better) return type;
  if (name == (tied ? "token_embd.weight" : "output.weight")) return *better;
  const bool chosen = name.ends_with("attn_v.weight") || name.ends_with("ffn_down.weight");
  return chosen && is_better_layer(layer_of(name), n_layers) ? *better : type;
}

std::string_view WeightMix::name() const { return better ? kMixName : traits(type).name; }

Result<WeightMix> parse_mix(std::string_view name) {
  if (const auto type = type_from_name(name)) return WeightMix{*type};
  if (same_name(name, kMixName)) return WeightMix{TensorType::kQ4_K, TensorType::kQ6_K};
  return make_error(ErrorCode::kInvalidArgument, "'{}' is not known; allowed: {}", printable(name),
                    mix_names());
}

std::string mix_names() { return fmt::format("{}, {}", supported_type_names(), kMixName); }

}  // namespace troika::model
