// Cases of operators that look at heads, positions and the KV cache.
#include "troika/device/conformance/case_list.h"

namespace troika::device::conformance {
namespace {

using graph::TensorId;

constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16};

std::string_view name_of(KvType type) { return type == KvType::kF32 ? "f32" : "f16"; }

struct AttentionShape {
  int64_t kv_heads = 1;    // of the layer
  int64_t group = 1;       // query heads for each
  int64_t first_head = 0;  // the heads that the operator at hand has
  int64_t n_heads = 1;
  int64_t head_dim = 64;
};

std::string describe(const AttentionShape& shape) {
  return fmt::format("heads {} to {} of {}x{}, {} wide", shape.first_head,
                     shape.first_head + shape.n_heads - 1, shape.kv_heads, shape.group,
                     shape.head_dim);
}

void add_attention(CaseList& list, const AttentionShape& shape, KvType type, const BatchPlan& batch,
                   const std::string& batch_name, int round = 0, float sharpness = 1) {
  list.add(
      fmt::format("{}, {} cache, {}", describe(shape), name_of(type), batch_name), batch,
      [=](ProblemBuilder& b) {
        b.kv_cache(type, 2, shape.kv_heads, shape.head_dim);
        graph::HeadShape heads =
            head_shape(shape.n_heads, shape.group, shape.head_dim, shape.first_head);
        heads.scale *= sharpness;
        const TensorId q = b.input(shape.n_heads * shape.head_dim);
        b.output(b.attention(q, -1, heads, 1));
      },
      round);
}

// A batch whose keys are all in the cache already: the operator itself writes none.
BatchPlan written(BatchPlan batch) {
  batch.keys_written = true;
  return batch;
}

BatchPlan chunks(std::vector<SequencePlan> sequences) {
  BatchPlan batch;
  batch.sequences = std::move(sequences);
  return batch;
}

}  // namespace

void add_rope_cases(CaseList& list) {
  struct Shape {
    int64_t head_dim;
    int64_t rope_dim;
  };
  for (const model::RopePairs pairs : {model::RopePairs::kAdjacent, model::RopePairs::kHalves}) {
    for (const Shape shape : {Shape{64, 64}, Shape{80, 32}, Shape{22, 22}, Shape{6, 2}}) {
      for (const int64_t n_heads : {1, 3, 7}) {
        for (const int64_t rows : list.row_counts()) {
          list.add(
              fmt::format("{} heads, {} of {} dimensions, {}, {} rows", n_heads, shape.rope_dim,
                          shape.head_dim,
                          pairs == model::RopePairs::kAdjacent ? "adjacent" : "halves", rows),
              ragged(rows),
              [=](ProblemBuilder& b) {
                graph::HeadShape heads = head_shape(n_heads, 1, shape.head_dim);
                heads.rope_dim = shape.rope_dim;
                heads.rope_pairs = pairs;
                const TensorId table = b.rope_table_input(shape.rope_dim);
                const TensorId x = b.input(n_heads * shape.head_dim, Spread::kOutliers);
                b.output(b.rope(x, table, heads));
              },
              n_heads == 3 && shape.head_dim == 64 && rows == list.most_rows()
                  ? (pairs == model::RopePairs::kAdjacent ? 1 : 2)
                  : 0);
        }
      }
    }
  }
  list.add("in and out of windows", ragged(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId table = b.rope_table_input(64);
    const TensorId x = b.window(b.input(384), 64, 192);
    b.write_next_to(b.window(b.frame(320), 128, 192));
    b.output(b.rope(x, table, head_shape(3, 3, 64)));
  });
}

void add_kv_write_cases(CaseList& list) {
  for (const KvType type : kKvTypes) {
    for (const AttentionShape& shape :
         {AttentionShape{1, 1, 0, 1, 64}, AttentionShape{3, 1, 0, 3, 64},
          AttentionShape{3, 1, 1, 2, 64}, AttentionShape{7, 1, 3, 1, 22}}) {
      for (const int64_t rows : list.row_counts()) {
        list.add(
            fmt::format("{}, {} cache, {} rows", describe(shape), name_of(type), rows),
            ragged(rows),
            [=](ProblemBuilder& b) {
              b.kv_cache(type, 2, shape.kv_heads, shape.head_dim);
              const int64_t width = shape.n_heads * shape.head_dim;
              const TensorId k = b.input(width, Spread::kOutliers);
              const TensorId v = b.input(width, Spread::kOutliers);
              b.output(b.kv_write(
                  k, v, head_shape(shape.n_heads, 1, shape.head_dim, shape.first_head), 1));
            },
            shape.n_heads == 2 && rows == list.most_rows() ? (type == KvType::kF32 ? 1 : 2) : 0);
      }
    }
  }
  list.add("out of windows", ragged(list.most_rows()), [](ProblemBuilder& b) {
    b.kv_cache(KvType::kF32, 1, 3, 64);
    const TensorId all = b.input(576);
    const TensorId k = b.window(all, 192, 128);
    const TensorId v = b.window(all, 448, 128);
    b.output(b.kv_write(k, v, head_shape(2, 1, 64, 1)));
  });
}

void add_attention_cases(CaseList& list) {
  const int64_t most = list.most_rows();
  for (const KvType type : kKvTypes) {
    for (const AttentionShape& shape : {
             AttentionShape{1, 1, 0, 1, 64},   // one head
             AttentionShape{3, 1, 0, 3, 64},   // no groups
             AttentionShape{3, 3, 0, 9, 64},   // the default model's
             AttentionShape{1, 7, 0, 7, 22},   // one group
             AttentionShape{1, 7, 2, 3, 64},   // inside a group
             AttentionShape{2, 7, 5, 4, 64},   // over the border of two groups
             AttentionShape{3, 4, 2, 8, 128},  // half a group, a whole one, half a group
             AttentionShape{3, 3, 8, 1, 64},   // the last head
         }) {
      for (const int64_t rows : list.row_counts()) {
        // The default model's heads, and heads cut across a group.
        const bool telling = type == KvType::kF32 && rows == most;
        const int round = !telling ? 0 : shape.n_heads == 9 ? 1 : shape.n_heads == 4 ? 2 : 0;
        add_attention(list, shape, type, written(ragged(rows)), fmt::format("{} rows", rows),
                      round);
      }
    }
    const AttentionShape usual{3, 3, 0, 9, 64};
    add_attention(list, usual, type, written(prompt(1)), "the first token", 3);
    add_attention(list, usual, type, written(prompt(1, 1000)), "one token after 1000");
    add_attention(list, usual, type, written(prompt(most, 200)), "a chunk after 200",
                  type == KvType::kF16 ? 2 : 0);
    add_attention(list, usual, type, written(ragged(most)), "sharp scores", 0, 4);
  }
  list.add("in and out of windows", written(ragged(most)), [](ProblemBuilder& b) {
    b.kv_cache(KvType::kF32, 1, 2, 64);
    const TensorId q = b.window(b.input(448), 128, 256);
    b.write_next_to(b.window(b.frame(448), 128, 256));
    b.output(b.attention(q, -1, head_shape(4, 4, 64, 2)));
  });
  // Written and read by one program, chunk by chunk, sequences coming and going.
  const AttentionShape shape{3, 3, 0, 9, 64};
  const BatchPlan plans[] = {
      chunks({{0, {5, list.length() - 1, 1, 1}}}),
      chunks({{0, {1, 0, 7, 1}}, {30, {3, 1, 1, 0}}, {0, {0, 20, 1, 1}}}),
  };
  for (const BatchPlan& plan : plans) {
    list.add(fmt::format("{} sequences in 4 chunks", plan.sequences.size()), plan,
             [=](ProblemBuilder& b) {
               b.kv_cache(KvType::kF32, 1, shape.kv_heads, shape.head_dim);
               const TensorId k = b.input(shape.kv_heads * shape.head_dim);
               const TensorId v = b.input(shape.kv_heads * shape.head_dim);
               const TensorId kv = b.kv_write(k, v, head_shape(shape.kv_heads, 1, shape.head_dim));
               const TensorId q = b.input(shape.n_heads * shape.head_dim);
               b.output(b.attention(q, kv, head_shape(shape.n_heads, shape.group, shape.head_dim)));
             });
  }
}

}  // namespace troika::device::conformance
