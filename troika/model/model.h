// A model read from a GGUF file: hyper-parameters, tokenizer, chat template and weights.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "troika/base/result.h"
#include "troika/model/byte_source.h"
#include "troika/model/chat_template.h"
#include "troika/model/hyper_parameters.h"
#include "troika/model/tokenizer.h"
#include "troika/model/weights.h"

namespace troika::model {

struct LoadOptions {
  bool weights = true;  // false: header, tokenizer and template only (inspect, tokenize)
  // Of the weights names, types and sizes only: enough to plan a pass, not to run one.
  bool sizes_only = false;
  int threads = 1;  // threads that read and check weights
  // Called from the loading thread with bytes done and in all; false cancels the load.
  std::function<bool(uint64_t, uint64_t)> progress;
};

// Owns all that it holds. Immutable after load(); any thread may read it.
class Model {
 public:
  // Every size, index and block scale is checked before it returns.
  static Result<Model> load(const std::string& path, const LoadOptions& options = {});
  // The same from any source of bytes, which is not needed afterwards; `path` is for display.
  static Result<Model> load(const ByteSource& source, const std::string& path,
                            const LoadOptions& options);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const HyperParameters& hyper_parameters() const;
  const Tokenizer& tokenizer() const;
  // The file's own template (tokenizer.chat_template); empty if it has none. Parse with
  // ChatTemplate.
  const std::string& chat_template_source() const;
  // By GGUF name ("blk.0.attn_q.weight"); nullptr if the file has none.
  const Weight* find(std::string_view name) const;
  const std::vector<Weight>& weights() const;
  uint64_t file_bytes() const;
  uint64_t parameter_count() const;
  const std::string& path() const;
  // Most common weight type among matrices, for display: "Q4_1".
  std::string type_name() const;
  // FNV-1a of the header: names a model in plans and caches.
  uint64_t fingerprint() const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troika::model
