#include "troika/device/conformance/reference.h"

#include <algorithm>
#include <cmath>

#include "troika/model/quantize.h"

namespace troika::device::conformance {
namespace {

using graph::Op;
using graph::OpKind;

// Columns [first, first + n) of a row of a stored matrix.
std::vector<float> stored_row(const model::Weight& weight, int64_t row, int64_t first, int64_t n) {
  std::vector<float> values(static_cast<size_t>(weight.cols));
  model::dequantize_row(weight.type, weight.data + row * weight.row_bytes(), values);
  return {values.begin() + first, values.begin() + first + n};
}

class OpReference {
 public:
  OpReference(const graph::Graph& graph, const Op& op, const BatchView& batch, Values& values,
              KvCells& kv)
      : graph_(graph),
        op_(op),
        batch_(batch),
        values_(values),
        kv_(kv),
        n_(graph.tensor(op.output).width) {}

  void mat_mul(RowRange rows) {
    const int64_t k = graph_.tensor(op_.inputs[0]).width;
    for (int64_t n = 0; n < n_; ++n) {
      const std::vector<float> w = stored_row(*op_.weight, op_.n_begin + n, op_.k_begin, k);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const double* x = in(0, r);
        double sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += x[i] * static_cast<double>(w[static_cast<size_t>(i)]);
        out(r)[n] = sum;
      }
    }
  }

  void attention() {
    for (const SequenceView& sequence : batch_.sequences) {
      for (int64_t i = 0; i < sequence.n_rows; ++i) {
        for (int64_t h = 0; h < op_.heads.n_heads; ++h) attend(sequence, i, h);
      }
    }
  }

  // Every other operator treats each row alone.
  void row(int64_t r) {
    switch (op_.kind) {
      case OpKind::kEmbed: {
        const auto w = stored_row(*op_.weight, batch_.tokens[static_cast<size_t>(r)], 0, n_);
        std::copy(w.begin(), w.end(), out(r));
        break;
      }
      case OpKind::kRopeTable:
        rope_table(r);
        break;
      case OpKind::kRmsNorm:
        rms_norm(r);
        break;
      case OpKind::kRope:
        rope(r);
        break;
      case OpKind::kKvWrite:
        kv_write(r);
        break;
      case OpKind::kSiluMul:
        for (int64_t i = 0; i < n_; ++i) {
          out(r)[i] = in(0, r)[i] / (1 + std::exp(-in(0, r)[i])) * in(1, r)[i];
        }
        break;
      case OpKind::kAdd:
        add(r);
        break;
      case OpKind::kConcat:
        concat(r);
        break;
      case OpKind::kGatherRows: {
        const auto wanted = static_cast<size_t>(r - batch_.first_logit_row);
        std::copy_n(in(0, batch_.logit_rows[wanted]), n_, out(r));
        break;
      }
      case OpKind::kMatMul:
      case OpKind::kAttention:
        break;
    }
  }

 private:
  const double* in(size_t input, int64_t r) { return values_.row(op_.inputs[input], r); }
  double* out(int64_t r) { return values_.row(op_.output, r); }

  void rope_table(int64_t r) {
    double* to = out(r);
    for (const double frequency : graph_.rope_inv_freq) {
      const double angle = batch_.positions[static_cast<size_t>(r)] * frequency;
      *to++ = std::cos(angle);
      *to++ = std::sin(angle);
    }
  }

  void rms_norm(int64_t r) {
    const std::vector<float> w = stored_row(*op_.weight, 0, 0, n_);
    double squares = 0;
    for (int64_t i = 0; i < n_; ++i) squares += in(0, r)[i] * in(0, r)[i];
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(n_) + static_cast<double>(op_.eps));
    for (int64_t i = 0; i < n_; ++i) {
      out(r)[i] = in(0, r)[i] * scale * static_cast<double>(w[static_cast<size_t>(i)]);
    }
  }

  void rope(int64_t r) {
    const graph::HeadShape& heads = op_.heads;
    std::copy_n(in(0, r), n_, out(r));
    for (int64_t h = 0; h < heads.n_heads; ++h) {
      const double* x = in(0, r) + h * heads.head_dim;
      double* y = out(r) + h * heads.head_dim;
      for (int64_t j = 0; j < heads.rope_dim / 2; ++j) {
        const bool adjacent = heads.rope_pairs == model::RopePairs::kAdjacent;
        const int64_t a = adjacent ? 2 * j : j;
        const int64_t b = adjacent ? a + 1 : j + heads.rope_dim / 2;
        const double cos = in(1, r)[2 * j];
        const double sin = in(1, r)[2 * j + 1];
        y[a] = x[a] * cos - x[b] * sin;
        y[b] = x[a] * sin + x[b] * cos;
      }
    }
  }

  void add(int64_t r) {
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (size_t term = 0; term < op_.inputs.size(); ++term) sum += in(term, r)[i];
      out(r)[i] = sum;
    }
  }

  void concat(int64_t r) {
    double* to = out(r);
    for (size_t part = 0; part < op_.inputs.size(); ++part) {
      to = std::copy_n(in(part, r), graph_.tensor(op_.inputs[part]).width, to);
    }
  }

  const SequenceView& sequence_of(int64_t r) const {
    return *std::find_if(batch_.sequences.begin(), batch_.sequences.end(), [r](const auto& s) {
      return s.first_row <= r && r < s.first_row + s.n_rows;
    });
  }

  float* cell(const SequenceView& sequence, int64_t head, int which, int64_t position) {
    const int32_t block = sequence.block_table[position / kKvBlockTokens];
    return kv_.values.data() + kv_.index(op_.layer, head, which, block, position % kKvBlockTokens);
  }

  void kv_write(int64_t r) {
    const int64_t dim = op_.heads.head_dim;
    const int64_t position = batch_.positions[static_cast<size_t>(r)];
    for (int64_t h = 0; h < op_.heads.n_heads; ++h) {
      for (int which = 0; which < 2; ++which) {
        const double* from = in(static_cast<size_t>(which), r) + h * dim;
        float* to = cell(sequence_of(r), op_.heads.first_head + h, which, position);
        for (int64_t d = 0; d < dim; ++d) {
          const auto value = static_cast<float>(from[d]);
          to[d] =
              kv_.layout.type == KvType::kF32 ? value : model::f16_to_f32(model::f32_to_f16(value));
        }
      }
    }
  }

  // Row `i` of a sequence, head `h` of the tensor: softmax of the scores of all keys up to itself.
  void attend(const SequenceView& sequence, int64_t i, int64_t h) {
    const graph::HeadShape& heads = op_.heads;
    const int64_t kv_head = (heads.first_head + h) / heads.group;
    const double* q = in(0, sequence.first_row + i) + h * heads.head_dim;
    double* y = out(sequence.first_row + i) + h * heads.head_dim;
    const int64_t keys = sequence.first_position + i + 1;
    std::vector<double> weights;
    for (int64_t t = 0; t < keys; ++t) {
      const float* k = cell(sequence, kv_head, 0, t);
      double score = 0;
      for (int64_t d = 0; d < heads.head_dim; ++d) score += q[d] * static_cast<double>(k[d]);
      weights.push_back(score * static_cast<double>(heads.scale));
    }
    const double top = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    std::fill_n(y, heads.head_dim, 0.0);
    for (int64_t t = 0; t < keys; ++t) {
      const float* v = cell(sequence, kv_head, 1, t);
      const double weight = weights[static_cast<size_t>(t)] / total;
      for (int64_t d = 0; d < heads.head_dim; ++d) y[d] += weight * static_cast<double>(v[d]);
    }
  }

  const graph::Graph& graph_;
  const Op& op_;
  const BatchView& batch_;
  Values& values_;
  KvCells& kv_;
  const int64_t n_;  // width of the output
};

}  // namespace

Values::Values(const graph::Graph& graph, int64_t rows) : graph_(graph) {
  for (const graph::Tensor& tensor : graph.tensors) {
    const int64_t size = tensor.window_of < 0 ? rows * tensor.width : 0;
    memory_.emplace_back(static_cast<size_t>(size));
  }
}

double* Values::row(graph::TensorId id, int64_t index) {
  const graph::Tensor& tensor = graph_.tensor(id);
  if (tensor.window_of >= 0) return row(tensor.window_of, index) + tensor.window_begin;
  return memory_[static_cast<size_t>(id)].data() + index * tensor.width;
}

RowRange rows_written(const graph::Graph& graph, graph::OpId id, const BatchView& batch) {
  const auto wanted = static_cast<int64_t>(batch.logit_rows.size());
  if (graph.op(id).kind == OpKind::kGatherRows) {
    return {batch.first_logit_row, batch.first_logit_row + wanted};
  }
  const graph::RowCount rows = graph.tensor(graph.op(id).output).rows;
  return {0, rows == graph::RowCount::kTokens ? batch.n_rows : wanted};
}

void compute(const graph::Graph& graph, graph::OpId id, const BatchView& batch, Values& values,
             KvCells& kv) {
  const Op& op = graph.op(id);
  OpReference reference(graph, op, batch, values, kv);
  const RowRange rows = rows_written(graph, id, batch);
  if (op.kind == OpKind::kMatMul) return reference.mat_mul(rows);
  if (op.kind == OpKind::kAttention) return reference.attention();
  for (int64_t r = rows.begin; r < rows.end; ++r) reference.row(r);
}

}  // namespace troika::device::conformance
