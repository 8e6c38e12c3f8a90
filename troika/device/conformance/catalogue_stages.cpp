// Cases of several operators in one program, as plans cut the pass: whole stages, pieces of paired
// cuts, joins.
#include "troika/device/conformance/case_list.h"

namespace troika::device::conformance {
namespace {

using graph::TensorId;
using model::TensorType;

// A layer's shape; `hidden` is no multiple of 64.
struct Layer {
  TensorType type = TensorType::kQ4_0;
  int64_t hidden = 96;
  int64_t n_heads = 3;
  int64_t kv_heads = 1;
  int64_t head_dim = 32;
  int64_t ffn = 160;
  KvType kv_type = KvType::kF32;

  int64_t group() const { return n_heads / kv_heads; }
};

std::string describe(const Layer& layer) {
  return fmt::format("{}, {} wide, {} heads for {}", type_name(layer.type), layer.hidden,
                     layer.n_heads, layer.kv_heads);
}

// Norm, q/k/v, RoPE, KV write.
struct G1 {
  TensorId q = -1;
  TensorId kv = -1;
};

G1 add_g1(ProblemBuilder& b, const Layer& layer, TensorId residual, TensorId table) {
  const int64_t query = layer.n_heads * layer.head_dim;
  const int64_t key = layer.kv_heads * layer.head_dim;
  const TensorId x = b.rms_norm(residual);
  const TensorId q = b.mat_mul(x, layer.type, query, layer.hidden);
  const TensorId k = b.mat_mul(x, layer.type, key, layer.hidden);
  const TensorId v = b.mat_mul(x, layer.type, key, layer.hidden);
  const graph::HeadShape key_heads = head_shape(layer.kv_heads, 1, layer.head_dim);
  G1 out;
  out.q = b.rope(q, table, head_shape(layer.n_heads, layer.group(), layer.head_dim));
  out.kv = b.kv_write(b.rope(k, table, key_heads), v, key_heads);
  return out;
}

TensorId add_attention(ProblemBuilder& b, const Layer& layer, const G1& g1) {
  return b.attention(g1.q, g1.kv, head_shape(layer.n_heads, layer.group(), layer.head_dim));
}

TensorId add_mlp(ProblemBuilder& b, const Layer& layer, TensorId residual) {
  const TensorId x = b.rms_norm(residual);
  const TensorId gate = b.mat_mul(x, layer.type, layer.ffn, layer.hidden);
  const TensorId up = b.mat_mul(x, layer.type, layer.ffn, layer.hidden);
  const TensorId down = b.mat_mul(b.silu_mul(gate, up), layer.type, layer.hidden, layer.ffn);
  return b.add({residual, down});
}

// Output projection and MLP.
TensorId add_g2(ProblemBuilder& b, const Layer& layer, TensorId attention, TensorId residual) {
  const TensorId projected =
      b.mat_mul(attention, layer.type, layer.hidden, layer.n_heads * layer.head_dim);
  return add_mlp(b, layer, b.add({residual, projected}));
}

void add_stages(CaseList& list, const Layer& layer, int64_t rows, int round = 0) {
  const auto name = [&](std::string_view stage) {
    return fmt::format("{}: {}, {} rows", stage, describe(layer), rows);
  };
  const auto cache = [=](ProblemBuilder& b) {
    b.kv_cache(layer.kv_type, 1, layer.kv_heads, layer.head_dim);
  };
  list.add(name("G1"), ragged(rows), [=](ProblemBuilder& b) {
    cache(b);
    const TensorId residual = b.input(layer.hidden, Spread::kOutliers);
    const G1 g1 = add_g1(b, layer, residual, b.rope_table_input(layer.head_dim));
    b.output(g1.q);
    b.output(g1.kv);
  });
  list.add(
      name("MLP"), prompt(rows),
      [=](ProblemBuilder& b) {
        b.output(add_mlp(b, layer, b.input(layer.hidden, Spread::kOutliers)));
      },
      round == 2 ? 1 : 0);
  list.add(name("G2"), prompt(rows), [=](ProblemBuilder& b) {
    const TensorId attention = b.input(layer.n_heads * layer.head_dim);
    b.output(add_g2(b, layer, attention, b.input(layer.hidden, Spread::kOutliers)));
  });
  list.add(
      name("layer"), ragged(rows),
      [=](ProblemBuilder& b) {
        cache(b);
        const TensorId residual = b.input(layer.hidden, Spread::kOutliers);
        const G1 g1 = add_g1(b, layer, residual, b.rope_table_input(layer.head_dim));
        b.output(add_g2(b, layer, add_attention(b, layer, g1), residual));
      },
      round);
}

// gate and up along N, down along K on the same slice: a partial sum comes out.
void add_paired_cuts(CaseList& list, TensorType type) {
  const int64_t hidden = whole_blocks(96, type);
  const int64_t begin = list.k_cut(list.n_cut(64), type);
  const int64_t n = list.k_cut(list.n_cut(96), type);
  if (begin % list.info().n_tile != 0 || n % list.info().n_tile != 0) return;
  const int64_t ffn = begin + n + whole_blocks(32, type);
  list.add(
      fmt::format("MLP by halves: {}", type_name(type)), prompt(list.most_rows()),
      [=](ProblemBuilder& b) {
        const TensorId x = b.rms_norm(b.input(hidden, Spread::kOutliers));
        const TensorId gate = b.mat_mul(x, type, ffn, hidden, {begin, n, 0});
        const TensorId up = b.mat_mul(x, type, ffn, hidden, {begin, n, 0});
        const TensorId mid = b.silu_mul(gate, up);
        b.output(b.mat_mul(mid, type, hidden, ffn, {0, 0, begin}));
      },
      type == TensorType::kQ4_0 ? 3 : 0);
}

// What others read of the middle of a stage must be written, too.
void add_shared_middles(CaseList& list) {
  list.add("residual and norm are both read", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId x = b.input(96, Spread::kOutliers);
    const TensorId product = b.mat_mul(x, TensorType::kQ4_0, 96, 96);
    const TensorId sum = b.add({b.input(96), product});
    b.output(product);
    b.output(sum);
    b.output(b.rms_norm(sum));
  });
  list.add("gate is read", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId x = b.input(96);
    const TensorId gate = b.mat_mul(x, TensorType::kQ8_0, 160, 96);
    const TensorId up = b.mat_mul(x, TensorType::kQ8_0, 160, 96);
    b.output(gate);
    b.output(b.silu_mul(gate, up));
  });
}

void add_joins(CaseList& list) {
  list.add("join of partial sums, then norm and products", prompt(list.most_rows()),
           [](ProblemBuilder& b) {
             const TensorId sum = b.add({b.input(96, Spread::kOutliers), b.input(96), b.input(96)});
             const TensorId x = b.rms_norm(sum);
             b.output(sum);
             b.output(b.mat_mul(x, TensorType::kQ4_0, 160, 96));
             b.output(b.mat_mul(x, TensorType::kQ4_1, 64, 96));
           });
  list.add("columns joined, then a product", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId x = b.concat({b.input(64), b.input(96)});
    b.output(b.mat_mul(x, TensorType::kQ8_0, 96, 160));
  });
  list.add("windows written, the whole read", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId x = b.input(96);
    const TensorId frame = b.frame(160);
    b.write_next_to(b.window(frame, 0, 64));
    b.mat_mul(x, TensorType::kQ4_0, 64, 96);
    b.write_next_to(b.window(frame, 64, 96));
    b.mat_mul(x, TensorType::kQ4_0, 96, 96);
    b.output(b.mat_mul(frame, TensorType::kQ4_0, 96, 160));
  });
}

// A product that is a window of what others read is not the adding operator's own.
void add_kept_windows(CaseList& list) {
  list.add("a summand is a window that is read", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId frame = b.frame(160);
    const TensorId window = b.window(frame, 64, 96);
    b.write_next_to(window);
    b.mat_mul(b.input(96), TensorType::kQ8_0, 96, 96);
    b.output(b.add({b.input(96), window}));
    b.output(window);
  });
}

void add_input_and_head(CaseList& list) {
  list.add("input", ragged(list.most_rows()), [](ProblemBuilder& b) {
    b.output(b.embed(TensorType::kQ4_0, 300, 96));
    b.output(b.rope_table(32));
  });
  for (const TensorType type : model::kTensorTypes) {
    list.add(
        fmt::format("head: {}", type_name(type)), ragged(list.most_rows()),
        [=](ProblemBuilder& b) {
          const int64_t cols = whole_blocks(96, type);
          const TensorId x = b.rms_norm(b.gather_rows(b.input(cols, Spread::kOutliers)));
          b.output(b.mat_mul(x, type, 300, cols));
        },
        type == TensorType::kQ4_0 ? 3 : 0);
  }
}

}  // namespace

void add_stage_cases(CaseList& list) {
  for (const TensorType type : model::kTensorTypes) {
    Layer layer;
    layer.type = type;
    layer.hidden = whole_blocks(layer.hidden, type);
    layer.n_heads = layer.hidden / layer.head_dim;
    layer.ffn = whole_blocks(layer.ffn, type);
    for (const int64_t rows : {int64_t{1}, list.most_rows()}) {
      add_stages(list, layer, rows, type == TensorType::kQ4_0 ? (rows == 1 ? 3 : 2) : 0);
    }
    add_paired_cuts(list, type);
  }
  for (const int64_t rows : list.row_counts()) {
    add_stages(list, {TensorType::kQ4_1, 160, 7, 7, 64, 576, KvType::kF32}, rows);
    add_stages(list, {TensorType::kQ4_0, 576, 9, 3, 64, 96, KvType::kF32}, rows);
    add_stages(list, {TensorType::kF16, 160, 1, 1, 22, 96, KvType::kF32}, rows);
  }
  add_shared_middles(list);
  add_joins(list);
  add_kept_windows(list);
  add_input_and_head(list);
}

}  // namespace troika::device::conformance
