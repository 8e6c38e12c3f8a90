#include "troika/model/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "troika/model/gguf.h"
#include "troika/model/quantize.h"
#include "troika/model/tensor_table.h"
#include "troika/model/tokenizer_metadata.h"
#include "troika/model/weight_pool.h"

namespace troika::model {
namespace {

// A file written by gguf-split holds some of the tensors only.
Status refuse_splits(const GgufHeader& header) {
  ASSIGN_OR_RETURN(const auto count, header.get_uint("split.count"));
  ASSIGN_OR_RETURN(const auto number, header.get_uint("split.no"));
  if (count.value_or(1) <= 1 && number.value_or(0) == 0) return {};
  if (number.value_or(0) >= count.value_or(1)) {
    return make_error(ErrorCode::kInvalidData, "the file says that it is split {} of {}",
                      *number + 1, count.value_or(1));
  }
  return make_error(ErrorCode::kUnsupported,
                    "the file is part {} of {} of a split model; merge the parts into one file "
                    "first (llama-gguf-split --merge FIRST_PART WHOLE)",
                    number.value_or(0) + 1, *count);
}

// 64-bit FNV-1a.
Result<uint64_t> fingerprint_of(const ByteSource& source, uint64_t header_bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  std::array<std::byte, 65536> buffer;
  const uint64_t end = std::min(header_bytes, source.size());
  for (uint64_t at = 0; at < end;) {
    const size_t n = std::min<uint64_t>(buffer.size(), end - at);
    RETURN_IF_ERROR(source.read(at, std::span(buffer.data(), n)));
    for (size_t i = 0; i < n; ++i) {
      hash = (hash ^ static_cast<uint64_t>(buffer[i])) * 0x100000001b3u;
    }
    at += n;
  }
  return hash;
}

uint64_t count_parameters(const std::vector<GgufTensor>& tensors) {
  uint64_t n = 0;
  for (const GgufTensor& t : tensors) {
    uint64_t weights = 1;
    for (const uint64_t dim : t.dims) weights *= dim;
    n += weights;
  }
  return n;
}

// The type that most weights of matrices have.
std::string common_type(const std::vector<GgufTensor>& tensors) {
  std::map<uint32_t, uint64_t> weights;
  for (const GgufTensor& t : tensors) {
    if (t.dims.size() > 1) weights[t.type_id] += t.dims[0] * t.dims[1];
  }
  const auto most = std::max_element(weights.begin(), weights.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == weights.end() ? std::string("none") : gguf_type_name(most->first);
}

Status check_vocabulary(const HyperParameters& hp, int64_t rows, size_t n_tokens) {
  if (hp.n_vocab != 0 && hp.n_vocab != rows) {
    return make_error(ErrorCode::kInvalidData,
                      "metadata '{}.vocab_size' is {}, but token_embd.weight has {} rows",
                      hp.architecture, hp.n_vocab, rows);
  }
  if (static_cast<uint64_t>(rows) != n_tokens) {
    return make_error(ErrorCode::kInvalidData,
                      "the tokenizer has {} tokens, but token_embd.weight has {} rows", n_tokens,
                      rows);
  }
  return {};
}

Status read_rope_factors(const WeightPool& pool, HyperParameters& hp) {
  const Weight* w = pool.find("rope_freqs.weight");
  if (w == nullptr) return {};
  hp.rope_factors.resize(static_cast<size_t>(w->cols));
  dequantize_row(w->type, w->data, hp.rope_factors);
  for (const float factor : hp.rope_factors) {
    if (!(factor > 0)) {
      return make_error(ErrorCode::kInvalidData,
                        "tensor 'rope_freqs.weight' holds {}; factors are above 0", factor);
    }
  }
  return {};
}

}  // namespace

struct Model::State {
  HyperParameters hyper_parameters;
  std::optional<Tokenizer> tokenizer;  // set by load
  std::string chat_template_source;
  WeightPool pool;
  uint64_t file_bytes = 0;
  uint64_t parameter_count = 0;
  std::string path;
  std::string type_name;
  uint64_t fingerprint = 0;

  // All that does not need the weights.
  Status read_metadata(const ByteSource& source, GgufHeader& header, bool with_weights);
};

Status Model::State::read_metadata(const ByteSource& source, GgufHeader& header,
                                   bool with_weights) {
  HyperParameters& hp = hyper_parameters;
  RETURN_IF_ERROR(refuse_splits(header));
  ASSIGN_OR_RETURN(hp, read_hyper_parameters(header));
  ASSIGN_OR_RETURN(const auto chat_template, header.get_string("tokenizer.chat_template"));
  chat_template_source = chat_template.value_or("");
  ASSIGN_OR_RETURN(TokenizerData data, take_tokenizer_data(header));
  const size_t n_tokens = data.tokens.size();
  if (with_weights || !header.tensors.empty()) {
    ASSIGN_OR_RETURN(const int64_t rows, embedding_rows(header));
    RETURN_IF_ERROR(check_vocabulary(hp, rows, n_tokens));
  }
  hp.n_vocab = static_cast<int64_t>(n_tokens);
  if (with_weights) RETURN_IF_ERROR(check_tensors(header, hp));
  ASSIGN_OR_RETURN(tokenizer, Tokenizer::create(std::move(data)));
  file_bytes = header.file_bytes;
  parameter_count = count_parameters(header.tensors);
  type_name = common_type(header.tensors);
  ASSIGN_OR_RETURN(fingerprint, fingerprint_of(source, header.data_offset));
  return {};
}

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, open_file_source(path));
  auto model = load(*source, path, options);
  if (!model && model.error().code != ErrorCode::kCancelled) {
    return in_file(path, std::move(model).error());
  }
  return model;
}

Result<Model> Model::load(const ByteSource& source, const std::string& path,
                          const LoadOptions& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  std::vector<GgufTensor> tensors;
  {
    ASSIGN_OR_RETURN(GgufHeader header, read_gguf_header(source));
    RETURN_IF_ERROR(state->read_metadata(source, header, options.weights));
    tensors = std::move(header.tensors);
  }
  if (options.weights && options.sizes_only) {
    state->pool = WeightPool::outline(tensors);
  } else if (options.weights) {
    ASSIGN_OR_RETURN(state->pool,
                     WeightPool::read(source, tensors, options.threads, options.progress));
    RETURN_IF_ERROR(read_rope_factors(state->pool, state->hyper_parameters));
  }
  return Model(std::move(state));
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const HyperParameters& Model::hyper_parameters() const { return state_->hyper_parameters; }
const Tokenizer& Model::tokenizer() const { return *state_->tokenizer; }
const std::string& Model::chat_template_source() const { return state_->chat_template_source; }
const Weight* Model::find(std::string_view name) const { return state_->pool.find(name); }
const std::vector<Weight>& Model::weights() const { return state_->pool.weights(); }
uint64_t Model::file_bytes() const { return state_->file_bytes; }
uint64_t Model::parameter_count() const { return state_->parameter_count; }
const std::string& Model::path() const { return state_->path; }
std::string Model::type_name() const { return state_->type_name; }
uint64_t Model::fingerprint() const { return state_->fingerprint; }

}  // namespace troika::model
