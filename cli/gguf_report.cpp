#include "cli/gguf_report.h"

#include <algorithm>

#include "cli/text.h"
#include "troika/model/tensor_type.h"

namespace troika::cli {
namespace {

constexpr size_t kShortList = 8;        // entries of a long list that are shown
constexpr size_t kMaxValueBytes = 100;  // of a string in the text report

Json list_json(const model::GgufArray& list, bool whole) {
  const size_t shown = whole ? list.size() : std::min(list.size(), kShortList);
  Json values = Json::array();
  std::visit(
      [&](const auto& items) {
        for (size_t i = 0; i < shown; ++i) {
          using Item = typename std::decay_t<decltype(items)>::value_type;
          values.push_back(static_cast<Item>(items[i]));
        }
      },
      list.values);
  if (shown == list.size()) return values;
  return {{"length", list.size()}, {"first", values}};
}

Json value_json(const model::GgufValue& value, bool whole) {
  return std::visit(
      [whole](const auto& v) -> Json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::shared_ptr<const model::GgufArray>>) {
          return v ? list_json(*v, whole) : Json::array();
        } else {
          return v;
        }
      },
      value);
}

std::string_view rope_scaling_name(model::RopeScaling scaling) {
  switch (scaling) {
    case model::RopeScaling::kNone:
      return "none";
    case model::RopeScaling::kLinear:
      return "linear";
    case model::RopeScaling::kYarn:
      return "yarn";
    case model::RopeScaling::kLongRope:
      return "longrope";
  }
  return "none";
}

Json hyper_parameters_json(const model::HyperParameters& p) {
  return {{"architecture", p.architecture},
          {"name", p.name},
          {"n_vocab", p.n_vocab},
          {"n_ctx_train", p.n_ctx_train},
          {"hidden", p.hidden},
          {"n_layers", p.n_layers},
          {"n_heads", p.n_heads},
          {"n_kv_heads", p.n_kv_heads},
          {"head_dim", p.head_dim},
          {"ffn", p.ffn},
          {"norm_eps", p.norm_eps},
          {"rope_dim", p.rope_dim},
          {"rope_base", p.rope_base},
          {"rope_scaling", std::string(rope_scaling_name(p.rope_scaling))},
          {"rope_scale_factor", p.rope_scale_factor},
          {"rope_factors", p.rope_factors.size()}};
}

Json tokenizer_json(const model::Tokenizer& tokenizer) {
  const auto id = [](std::optional<model::TokenId> token) {
    return token ? Json(*token) : Json(nullptr);
  };
  Json ends = Json::array();
  int64_t special = 0;
  for (int64_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto token = static_cast<model::TokenId>(i);
    if (tokenizer.is_special(token)) ++special;
    if (tokenizer.is_end_of_generation(token)) ends.push_back(token);
  }
  return {{"vocab_size", tokenizer.vocab_size()},
          {"special_tokens", special},
          {"bos", id(tokenizer.bos())},
          {"eos", id(tokenizer.eos())},
          {"end_of_generation", ends},
          {"add_bos", tokenizer.add_bos()},
          {"add_eos", tokenizer.add_eos()}};
}

std::string lines(const std::string& title, const Json& object) {
  std::string text = fmt::format("{}\n", title);
  for (const auto& [key, value] : object.items()) {
    const std::string shown = value.is_string() ? value.get<std::string>() : to_text(value);
    text += fmt::format("  {:<44} {}\n", printable(key), shortened(shown, kMaxValueBytes));
  }
  return text;
}

Json metadata_json(const GgufReport& report) {
  Json metadata = Json::object();
  for (const auto& [key, value] : report.header.metadata) {
    metadata[valid_utf8(key)] = value_json(value, report.whole_lists);
  }
  return metadata;
}

}  // namespace

Json report_json(const GgufReport& report) {
  const model::GgufHeader& header = report.header;
  Json json = {{"file", report.path},
               {"file_bytes", header.file_bytes},
               {"gguf_version", header.version},
               {"alignment", header.alignment},
               {"supported", report.model != nullptr}};
  if (report.model != nullptr) {
    json["type"] = report.model->type_name();
    json["parameters"] = report.model->parameter_count();
    json["fingerprint"] = fmt::format("{:016x}", report.model->fingerprint());
    json["hyper_parameters"] = hyper_parameters_json(report.model->hyper_parameters());
    json["tokenizer"] = tokenizer_json(report.model->tokenizer());
  } else {
    json["reason"] = report.unsupported;
  }
  json["metadata"] = metadata_json(report);
  if (report.tensors) {
    Json tensors = Json::array();
    for (const model::GgufTensor& tensor : header.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"type", std::string(model::gguf_type_name(tensor.type_id))},
                         {"dims", tensor.dims},
                         {"bytes", tensor.bytes},
                         {"offset", tensor.file_offset}});
    }
    json["tensors"] = std::move(tensors);
  }
  return json;
}

std::string report_text(const GgufReport& report) {
  const model::GgufHeader& header = report.header;
  std::string text =
      fmt::format("{}: {:.1f} MB, GGUF v{}, alignment {}\n", printable(report.path),
                  static_cast<double>(header.file_bytes) / 1e6, header.version, header.alignment);
  if (report.model != nullptr) {
    text += fmt::format("{:.2f} million parameters, mostly {}\n\n",
                        static_cast<double>(report.model->parameter_count()) / 1e6,
                        report.model->type_name());
    text += lines("hyper-parameters", hyper_parameters_json(report.model->hyper_parameters()));
    text += '\n';
    text += lines("tokenizer", tokenizer_json(report.model->tokenizer()));
  } else {
    text += fmt::format("cannot be run: {}\n", printable(report.unsupported));
  }
  text += '\n';
  text +=
      lines(fmt::format("metadata ({} entries)", header.metadata.size()), metadata_json(report));
  if (!report.tensors) return text;
  text += fmt::format("\ntensors ({})\n", header.tensors.size());
  for (const model::GgufTensor& tensor : header.tensors) {
    text += fmt::format("  {:<44} {:<6} {:>24} {:>12} bytes\n", printable(tensor.name),
                        model::gguf_type_name(tensor.type_id),
                        fmt::format("[{}]", fmt::join(tensor.dims, ", ")), tensor.bytes);
  }
  return text;
}

}  // namespace troika::cli
