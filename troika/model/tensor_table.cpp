#include "troika/model/tensor_table.h"

#include <unordered_map>
#include <unordered_set>

#include "troika/model/tensor_type.h"

namespace troika::model {
namespace {

std::string shape_text(const std::vector<uint64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::vector<uint64_t> dims_of(const ExpectedTensor& want) {
  const auto cols = static_cast<uint64_t>(want.cols);
  if (want.vector) return {cols};
  return {cols, static_cast<uint64_t>(want.rows)};
}

// Some writers pad the dimensions with ones.
std::vector<uint64_t> without_trailing_ones(std::vector<uint64_t> dims, size_t keep) {
  while (dims.size() > keep && dims.back() == 1) dims.pop_back();
  return dims;
}

Status check_tensor(const GgufTensor& tensor, const ExpectedTensor& want) {
  const std::vector<uint64_t> wanted = dims_of(want);
  if (without_trailing_ones(tensor.dims, wanted.size()) != wanted) {
    return make_error(ErrorCode::kInvalidData, "tensor '{}' has the shape {}; {} is needed",
                      printable(tensor.name), shape_text(tensor.dims), shape_text(wanted));
  }
  if (!traits_of(tensor.type_id)) {
    return make_error(ErrorCode::kUnsupported,
                      "tensor '{}' has the type {}, which is not supported; supported: {}",
                      printable(tensor.name), gguf_type_name(tensor.type_id),
                      supported_type_names());
  }
  if (want.vector && tensor.type_id != static_cast<uint32_t>(TensorType::kF32)) {
    return make_error(ErrorCode::kUnsupported, "tensor '{}' has the type {}; F32 is needed",
                      printable(tensor.name), gguf_type_name(tensor.type_id));
  }
  return {};
}

void add_layer(const HyperParameters& hp, int64_t layer, std::vector<ExpectedTensor>& out) {
  const auto vector = [&](const char* part, int64_t n) {
    out.push_back({fmt::format("blk.{}.{}", layer, part), 1, n, true, false});
  };
  const auto matrix = [&](const char* part, int64_t rows, int64_t cols) {
    out.push_back({fmt::format("blk.{}.{}", layer, part), rows, cols, false, false});
  };
  vector("attn_norm.weight", hp.hidden);
  matrix("attn_q.weight", hp.q_width(), hp.hidden);
  matrix("attn_k.weight", hp.kv_width(), hp.hidden);
  matrix("attn_v.weight", hp.kv_width(), hp.hidden);
  matrix("attn_output.weight", hp.hidden, hp.q_width());
  vector("ffn_norm.weight", hp.hidden);
  matrix("ffn_gate.weight", hp.ffn, hp.hidden);
  matrix("ffn_up.weight", hp.ffn, hp.hidden);
  matrix("ffn_down.weight", hp.hidden, hp.ffn);
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const HyperParameters& hp) {
  std::vector<ExpectedTensor> out;
  out.push_back({"token_embd.weight", hp.n_vocab, hp.hidden, false, false});
  out.push_back({"rope_freqs.weight", 1, hp.rope_dim / 2, true, true});
  for (int64_t layer = 0; layer < hp.n_layers; ++layer) add_layer(hp, layer, out);
  out.push_back({"output_norm.weight", 1, hp.hidden, true, false});
  out.push_back({"output.weight", hp.n_vocab, hp.hidden, false, true});
  return out;
}

Result<int64_t> embedding_rows(const GgufHeader& header) {
  constexpr uint64_t kMaxRows = uint64_t{1} << 24;
  for (const GgufTensor& t : header.tensors) {
    if (t.name != "token_embd.weight") continue;
    const uint64_t rows = t.dims.size() > 1 ? t.dims[1] : 1;
    if (rows > kMaxRows) {
      return make_error(ErrorCode::kInvalidData,
                        "a vocabulary of {} tokens; at most {} are allowed", rows, kMaxRows);
    }
    return static_cast<int64_t>(rows);
  }
  return make_error(ErrorCode::kInvalidData, "tensor 'token_embd.weight' is missing");
}

Status check_tensors(const GgufHeader& header, const HyperParameters& hp) {
  std::unordered_map<std::string_view, const GgufTensor*> found;
  for (const GgufTensor& t : header.tensors) found.emplace(t.name, &t);
  std::unordered_set<std::string> known;
  for (ExpectedTensor& want : expected_tensors(hp)) {
    const auto at = found.find(want.name);
    if (at != found.end()) {
      RETURN_IF_ERROR(check_tensor(*at->second, want));
    } else if (!want.optional) {
      return make_error(ErrorCode::kInvalidData, "tensor '{}' is missing; its shape would be {}",
                        want.name, shape_text(dims_of(want)));
    }
    known.insert(std::move(want.name));
  }
  for (const GgufTensor& t : header.tensors) {
    if (known.count(t.name) == 0) {
      return make_error(ErrorCode::kUnsupported,
                        "tensor '{}' is not part of a model of architecture '{}' with {} layers as "
                        "it is computed here",
                        printable(t.name), hp.architecture, hp.n_layers);
    }
  }
  return {};
}

}  // namespace troika::model
