// For tests and fuzzers: a whole model of a few kilobytes in memory, any part of which can be made
// wrong before it is written out as GGUF.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troika/model/hyper_parameters.h"
#include "troika/model/quantize.h"
#include "troika/model/random_weights.h"
#include "troika/model/synthetic_vocabulary.h"
#include "troika/model/tensor_table.h"
#include "troika/model/tensor_type.h"

namespace troika::model::testing {

// Bytes of a GGUF file, put together piece by piece, right or wrong.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& put(T value) {
    return put_raw(&value, sizeof(T));
  }
  GgufBytes& put_raw(const void* data, size_t n) {
    const size_t at = bytes_.size();
    bytes_.resize(at + n);
    if (n > 0) std::memcpy(bytes_.data() + at, data, n);
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    put<uint64_t>(text.size());
    return put_raw(text.data(), text.size());
  }
  GgufBytes& start(uint32_t version, uint64_t n_tensors, uint64_t n_metadata) {
    put_raw("GGUF", 4);
    return put(version).put(n_tensors).put(n_metadata);
  }
  GgufBytes& pad(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufBytes& zeros(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return *this;
  }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

using MetadataValue =
    std::variant<uint32_t, int32_t, float, bool, std::string, std::vector<std::string>,
                 std::vector<int32_t>, std::vector<float>, std::vector<uint8_t>>;

class TinyModel {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    uint32_t type_id = 0;
    std::vector<std::byte> data;
  };

  std::map<std::string, MetadataValue> metadata;
  std::vector<Tensor> tensors;

  explicit TinyModel(TensorType type = TensorType::kQ4_0, bool tied = true) {
    HyperParameters hp;
    hp.n_vocab = 300;
    // A small block type is given rows of a few of its blocks, a large one of one or two.
    const int64_t block = traits(type).block_weights;
    hp.hidden = std::max<int64_t>(64, block);
    hp.n_layers = 1;
    hp.n_heads = 4;
    hp.n_kv_heads = 2;
    hp.head_dim = hp.hidden / hp.n_heads;
    hp.rope_dim = hp.head_dim;
    hp.ffn = std::max<int64_t>(96, 2 * block);
    add_metadata(hp);
    for (const ExpectedTensor& want : expected_tensors(hp)) {
      if (want.name == "rope_freqs.weight" || (tied && want.name == "output.weight")) continue;
      add_tensor(want, type);
    }
  }

  Tensor& tensor(std::string_view name) {
    for (Tensor& t : tensors) {
      if (t.name == name) return t;
    }
    return tensors.emplace_back();
  }

  void remove_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
  }

  std::vector<std::byte> bytes() const {
    GgufBytes out;
    put_header(out, [](const Tensor& t) { return t.data.size(); });
    for (const Tensor& t : tensors) {
      out.pad(kAlignment).put_raw(t.data.data(), t.data.size());
    }
    return std::move(out.bytes());
  }

  // Writes a file whose F32 tensors, of any size, are holes; returns its size.
  uint64_t write_holes(const std::string& path) const {
    GgufBytes out;
    const uint64_t data = put_header(out, [](const Tensor& t) {
      uint64_t n = sizeof(float);
      for (const uint64_t dim : t.dims) n *= dim;
      return n;
    });
    out.pad(kAlignment);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(out.bytes().data()),
               static_cast<std::streamsize>(out.bytes().size()));
    file.close();
    const uint64_t whole = out.bytes().size() + data;
    std::filesystem::resize_file(path, whole);
    return whole;
  }

 private:
  static constexpr uint64_t kAlignment = 32;

  // Returns the bytes that the data will have.
  template <class SizeOf>
  uint64_t put_header(GgufBytes& out, const SizeOf& size_of) const {
    out.start(3, tensors.size(), metadata.size());
    for (const auto& [key, value] : metadata) put_metadata(out, key, value);
    uint64_t offset = 0;
    for (const Tensor& t : tensors) {
      out.text(t.name).put(static_cast<uint32_t>(t.dims.size()));
      for (const uint64_t dim : t.dims) out.put(dim);
      out.put(t.type_id).put(offset);
      offset = (offset + size_of(t) + kAlignment - 1) / kAlignment * kAlignment;
    }
    return offset;
  }

  void add_metadata(const HyperParameters& hp) {
    const auto u32 = [](int64_t value) { return static_cast<uint32_t>(value); };
    const SyntheticVocabulary vocabulary = make_synthetic_vocabulary(hp.n_vocab).value();
    metadata = {
        {"general.architecture", std::string("llama")},
        {"general.name", std::string("tiny")},
        {"llama.context_length", u32(128)},
        {"llama.embedding_length", u32(hp.hidden)},
        {"llama.block_count", u32(hp.n_layers)},
        {"llama.feed_forward_length", u32(hp.ffn)},
        {"llama.attention.head_count", u32(hp.n_heads)},
        {"llama.attention.head_count_kv", u32(hp.n_kv_heads)},
        {"llama.attention.layer_norm_rms_epsilon", 1e-5f},
        {"llama.rope.dimension_count", u32(hp.rope_dim)},
        {"tokenizer.ggml.model", std::string("gpt2")},
        {"tokenizer.ggml.pre", std::string("gpt-2")},
        {"tokenizer.ggml.tokens", vocabulary.tokens},
        {"tokenizer.ggml.token_type", vocabulary.types},
        {"tokenizer.ggml.merges", vocabulary.merges},
        {"tokenizer.ggml.bos_token_id", u32(vocabulary.bos)},
        {"tokenizer.ggml.eos_token_id", u32(vocabulary.eos)},
    };
  }

  void add_tensor(const ExpectedTensor& want, TensorType type) {
    const TensorType own = want.vector ? TensorType::kF32 : type;
    Tensor tensor;
    tensor.name = want.name;
    tensor.dims = {static_cast<uint64_t>(want.cols)};
    if (!want.vector) tensor.dims.push_back(static_cast<uint64_t>(want.rows));
    tensor.type_id = static_cast<uint32_t>(own);
    tensor.data.resize(static_cast<size_t>(want.rows * row_bytes(own, want.cols)));
    RandomWeights(1, want.name).fill(own, 0.1f, tensor.data);
    tensors.push_back(std::move(tensor));
  }

  static void put_metadata(GgufBytes& out, const std::string& key, const MetadataValue& value) {
    out.text(key);
    const auto array = [&](uint32_t type, const auto& values) {
      out.put<uint32_t>(9).put(type).template put<uint64_t>(values.size());
      if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::vector<std::string>>) {
        for (const std::string& text : values) out.text(text);
      } else {
        out.put_raw(values.data(), values.size() * sizeof(values[0]));
      }
    };
    struct Visitor {
      GgufBytes& out;
      const decltype(array)& put_array;
      void operator()(uint32_t v) const { out.put<uint32_t>(4).put(v); }
      void operator()(int32_t v) const { out.put<uint32_t>(5).put(v); }
      void operator()(float v) const { out.put<uint32_t>(6).put(v); }
      void operator()(bool v) const { out.put<uint32_t>(7).put<uint8_t>(v ? 1 : 0); }
      void operator()(const std::string& v) const { out.put<uint32_t>(8).text(v); }
      void operator()(const std::vector<std::string>& v) const { put_array(8, v); }
      void operator()(const std::vector<int32_t>& v) const { put_array(5, v); }
      void operator()(const std::vector<float>& v) const { put_array(6, v); }
      void operator()(const std::vector<uint8_t>& v) const { put_array(0, v); }
    };
    std::visit(Visitor{out, array}, value);
  }
};

}  // namespace troika::model::testing
