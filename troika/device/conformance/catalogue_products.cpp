// Cases of products: every weight type, odd shapes, slices along N and K, windows.
#include "troika/device/conformance/case_list.h"

namespace troika::device::conformance {
namespace {

using graph::TensorId;
using model::TensorType;

struct Shape {
  int64_t n = 0;
  int64_t k = 0;
};

// The round of a quick check for the most common type, and for the others.
int usual(TensorType type, int round, int others) {
  return type == TensorType::kQ4_0 ? round : others;
}

bool is_plain(TensorType type) { return model::traits(type).block_weights == 1; }

void add_shapes(CaseList& list, TensorType type) {
  std::vector<Shape> shapes = {{160, 96}, {96, 576}, {300, 64}};
  if (is_plain(type)) shapes.push_back({70, 100});
  for (Shape shape : shapes) {
    shape.k = whole_blocks(shape.k, type);
    for (const int64_t rows : list.row_counts()) {
      list.add(
          fmt::format("{} {}x{}, {} rows", type_name(type), shape.n, shape.k, rows), prompt(rows),
          [=](ProblemBuilder& b) {
            const TensorId x = b.input(shape.k, Spread::kOutliers);
            b.output(b.mat_mul(x, type, shape.n, shape.k));
          },
          shape.n == 160 ? (rows == 1                  ? 3
                            : rows == list.most_rows() ? usual(type, 1, 2)
                                                       : 0)
                         : 0);
    }
  }
  list.add(fmt::format("{} 576x1536, 5 rows", type_name(type)), prompt(5),
           [=](ProblemBuilder& b) { b.output(b.mat_mul(b.input(1536), type, 576, 1536)); });
}

// The other operand stays in place, on devices that can choose.
void add_orders(CaseList& list, TensorType type) {
  const int64_t cols = whole_blocks(96, type);
  for (const int64_t rows : list.row_counts()) {
    list.add(
        fmt::format("{} 160x{} with the input stationary, {} rows", type_name(type), cols, rows),
        prompt(rows), [=](ProblemBuilder& b) {
          b.keep_inputs_stationary();
          b.output(b.mat_mul(b.input(cols, Spread::kOutliers), type, 160, cols));
        });
  }
}

// The first, a middle and the last part of the outputs; the last is no multiple of anything.
void add_n_slices(CaseList& list, TensorType type) {
  constexpr int64_t kLast = 37;
  const int64_t cols = whole_blocks(96, type);
  const int64_t first = list.n_cut(48);
  const int64_t second = first + list.n_cut(80);
  const int64_t all = second + kLast;
  const WeightSlice slices[] = {
      {0, first, 0}, {first, second - first, 0}, {second, kLast, 0}, {first, all - first, 0}};
  for (const WeightSlice& slice : slices) {
    for (const int64_t rows : {int64_t{1}, list.most_rows()}) {
      list.add(
          fmt::format("{} outputs {} to {} of {}, {} rows", type_name(type), slice.n_begin,
                      slice.n_begin + slice.n - 1, all, rows),
          prompt(rows),
          [=](ProblemBuilder& b) { b.output(b.mat_mul(b.input(cols), type, all, cols, slice)); },
          slice.n_begin == first && rows > 1 ? usual(type, 2, 0) : 0);
    }
  }
}

void add_k_slices(CaseList& list, TensorType type) {
  constexpr int64_t kOutputs = 160;
  const int64_t first = list.k_cut(96, type);
  const int64_t second = first + list.k_cut(160, type);
  const int64_t all = second + whole_blocks(96, type);
  struct Inputs {
    int64_t begin = 0;
    int64_t end = 0;
  };
  for (const Inputs k :
       {Inputs{0, first}, Inputs{first, second}, Inputs{second, all}, Inputs{first, all}}) {
    for (const int64_t rows : {int64_t{1}, list.most_rows()}) {
      list.add(
          fmt::format("{} inputs {} to {} of {}, {} rows", type_name(type), k.begin, k.end - 1, all,
                      rows),
          prompt(rows),
          [=](ProblemBuilder& b) {
            const TensorId x = b.input(k.end - k.begin, Spread::kOutliers);
            b.output(b.mat_mul(x, type, kOutputs, all, {0, 0, k.begin}));
          },
          k.begin == first && rows > 1 ? usual(type, 2, 0) : 0);
    }
  }
  const int64_t n_begin = list.n_cut(32);
  const int64_t n = list.n_cut(64);
  list.add(fmt::format("{} a block of outputs and inputs", type_name(type)),
           prompt(list.most_rows()), [=](ProblemBuilder& b) {
             const TensorId x = b.input(second - first);
             b.output(b.mat_mul(x, type, n_begin + n + 16, all, {n_begin, n, first}));
           });
}

void add_windows(CaseList& list, TensorType type) {
  const int64_t cols = whole_blocks(96, type);
  for (const int64_t rows : {int64_t{1}, list.most_rows()}) {
    list.add(
        fmt::format("{} from and to windows, {} rows", type_name(type), rows), prompt(rows),
        [=](ProblemBuilder& b) {
          const TensorId x = b.window(b.input(cols + 128, Spread::kOutliers), 64, cols);
          b.write_next_to(b.window(b.frame(256), 32, 160));
          b.output(b.mat_mul(x, type, 160, cols));
        },
        usual(type, 3, 0));
  }
  list.add(fmt::format("{} three products into one frame", type_name(type)),
           prompt(list.most_rows()), [=](ProblemBuilder& b) {
             const TensorId x = b.input(cols);
             const TensorId frame = b.frame(320);
             const int64_t borders[] = {0, 192, 256, 320};
             for (int i = 0; i < 3; ++i) {
               const int64_t n = borders[i + 1] - borders[i];
               b.write_next_to(b.window(frame, borders[i], n));
               b.output(b.mat_mul(x, type, n, cols));
             }
           });
}

// Every standard length, full and one row short.
void add_lengths(CaseList& list) {
  for (const int64_t length : list.info().standard_rows) {
    for (const int64_t rows : {length - 1, length}) {
      if (rows == 0) continue;
      list.add(
          fmt::format("length {}, {} rows", length, rows), prompt(rows),
          [](ProblemBuilder& b) { b.output(b.mat_mul(b.input(96), TensorType::kQ4_0, 160, 96)); });
    }
  }
}

void add_head(CaseList& list) {
  for (const int64_t wanted : {int64_t{1}, int64_t{3}, list.most_rows()}) {
    BatchPlan batch = prompt(list.most_rows());
    for (int64_t i = 0; i < wanted; ++i) batch.logit_rows.push_back(static_cast<int32_t>(i));
    list.add(fmt::format("logits of {} rows", wanted), batch, [](ProblemBuilder& b) {
      const TensorId x = b.input(96, Spread::kOutliers, graph::RowCount::kLogits);
      b.output(b.mat_mul(x, TensorType::kQ8_0, 300, 96));
    });
  }
}

}  // namespace

void add_mat_mul_cases(CaseList& list) {
  for (const TensorType type : model::kTensorTypes) {
    add_shapes(list, type);
    add_orders(list, type);
    add_n_slices(list, type);
    add_k_slices(list, type);
    add_windows(list, type);
  }
  add_lengths(list);
  add_head(list);
}

}  // namespace troika::device::conformance
