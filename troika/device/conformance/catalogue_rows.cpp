// Cases of operators that treat each row alone.
#include "troika/device/conformance/case_list.h"

namespace troika::device::conformance {
namespace {

using graph::OpKind;
using graph::TensorId;
using model::TensorType;

constexpr int64_t kWidths[] = {96, 160, 576};

void add_embed(CaseList& list) {
  for (const TensorType type : model::kTensorTypes) {
    int64_t before = 0;
    for (const int64_t wanted : kWidths) {
      const int64_t width = whole_blocks(wanted, type);
      if (width == before) continue;
      before = width;
      for (const int64_t rows : list.row_counts()) {
        list.add(
            fmt::format("{} 300x{}, {} rows", type_name(type), width, rows), ragged(rows),
            [=](ProblemBuilder& b) { b.output(b.embed(type, 300, width)); },
            wanted == 96 && rows == list.most_rows() ? (type == TensorType::kQ4_0 ? 1 : 3) : 0);
      }
    }
  }
}

void add_rope_table(CaseList& list) {
  for (const int64_t rope_dim : {64, 22, 2}) {
    for (const int64_t rows : list.row_counts()) {
      list.add(
          fmt::format("{} angles, {} rows", rope_dim / 2, rows), ragged(rows),
          [=](ProblemBuilder& b) { b.output(b.rope_table(rope_dim)); },
          rope_dim == 64 && rows == list.most_rows() ? 1 : 0);
    }
    // Where a float no longer holds an angle.
    list.add(
        fmt::format("{} angles, position 100000", rope_dim / 2), prompt(3, 100000),
        [=](ProblemBuilder& b) { b.output(b.rope_table(rope_dim)); }, rope_dim == 64 ? 2 : 0);
  }
}

void add_rms_norm(CaseList& list) {
  struct Named {
    Spread spread;
    std::string_view name;
  };
  for (const Named& values : {Named{Spread::kNormal, "even"}, Named{Spread::kOutliers, "outliers"},
                              Named{Spread::kSmall, "small"}, Named{Spread::kHuge, "huge"}}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : list.row_counts()) {
        list.add(
            fmt::format("{}, {} values, {} rows", width, values.name, rows), prompt(rows),
            [=](ProblemBuilder& b) { b.output(b.rms_norm(b.input(width, values.spread))); },
            width == 96 && rows == list.most_rows() ? (values.spread == Spread::kOutliers ? 1 : 2)
                                                    : 0);
      }
    }
  }
  BatchPlan wanted = prompt(list.length());
  wanted.logit_rows = {0, 1, 2};
  list.add("rows of logits", wanted, [](ProblemBuilder& b) {
    b.output(b.rms_norm(b.input(96, Spread::kNormal, graph::RowCount::kLogits)));
  });
  list.add("in and out of windows", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId x = b.window(b.input(224), 64, 96);
    b.write_next_to(b.window(b.frame(160), 32, 96));
    b.output(b.rms_norm(x));
  });
}

void add_silu_mul(CaseList& list) {
  for (const int64_t width : {int64_t{96}, int64_t{160}, int64_t{1536}}) {
    for (const int64_t rows : list.row_counts()) {
      list.add(
          fmt::format("{}, {} rows", width, rows), prompt(rows),
          [=](ProblemBuilder& b) {
            const TensorId gate = b.input(width, Spread::kOutliers);
            b.output(b.silu_mul(gate, b.input(width)));
          },
          width == 160 && rows == list.most_rows() ? 1 : 0);
    }
  }
  list.add("in and out of windows", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId both = b.input(256);
    const TensorId gate = b.window(both, 0, 96);
    const TensorId up = b.window(both, 128, 96);
    b.write_next_to(b.window(b.frame(160), 64, 96));
    b.output(b.silu_mul(gate, up));
  });
}

void add_sums(CaseList& list) {
  for (const int terms : {2, 3, 5}) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : list.row_counts()) {
        list.add(
            fmt::format("{} terms of {}, {} rows", terms, width, rows), prompt(rows),
            [=](ProblemBuilder& b) {
              std::vector<TensorId> inputs;
              for (int i = 0; i < terms; ++i) {
                inputs.push_back(b.input(width, i == 0 ? Spread::kHuge : Spread::kOutliers));
              }
              b.output(b.add(inputs));
            },
            width == 576 && rows == list.most_rows() ? (terms == 3 ? 1 : 3) : 0);
      }
    }
  }
  list.add("the same term twice", prompt(3), [](ProblemBuilder& b) {
    const TensorId x = b.input(96);
    b.output(b.add({x, b.input(96), x}));
  });
  list.add("in and out of windows", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId wide = b.input(256);
    const TensorId first = b.window(wide, 0, 96);
    const TensorId second = b.window(wide, 128, 96);
    b.write_next_to(b.window(b.frame(160), 64, 96));
    b.output(b.add({first, b.input(96), second}));
  });
}

void add_concat(CaseList& list) {
  const std::vector<int64_t> lists[] = {{96, 160, 32}, {576}, {66, 22, 1, 7}, {64, 64}};
  for (const std::vector<int64_t>& widths : lists) {
    for (const int64_t rows : list.row_counts()) {
      list.add(
          fmt::format("{}, {} rows", fmt::join(widths, "+"), rows), prompt(rows),
          [=](ProblemBuilder& b) {
            std::vector<TensorId> parts;
            for (const int64_t width : widths) parts.push_back(b.input(width));
            b.output(b.concat(parts));
          },
          widths.size() == 3 && rows == list.most_rows() ? 1 : 0);
    }
  }
  list.add("windows, joined in another order", prompt(list.most_rows()), [](ProblemBuilder& b) {
    const TensorId wide = b.input(256);
    const TensorId last = b.window(wide, 192, 64);
    const TensorId first = b.window(wide, 0, 96);
    b.output(b.concat({last, first}));
  });
}

void add_gather_rows(CaseList& list) {
  const auto last = static_cast<int32_t>(list.length() - 1);
  const std::vector<int32_t> lists[] = {{last}, {0}, {0, last / 2, last}};
  for (const std::vector<int32_t>& wanted : lists) {
    for (const int64_t width : kWidths) {
      for (const int64_t first : {0, 2}) {
        BatchPlan batch = ragged(list.length());
        batch.logit_rows = wanted;
        batch.first_logit_row = first;
        if (first + static_cast<int64_t>(wanted.size()) > list.length()) continue;
        list.add(
            fmt::format("rows {} of {}, {} wide, from row {} on", fmt::join(wanted, " "),
                        list.length(), width, first),
            batch, [=](ProblemBuilder& b) { b.output(b.gather_rows(b.input(width))); },
            width == 96 && wanted.size() == 3 ? (first == 0 ? 1 : 3) : 0);
      }
    }
  }
}

}  // namespace

void add_row_cases(CaseList& list, OpKind kind) {
  if (kind == OpKind::kEmbed) add_embed(list);
  if (kind == OpKind::kRopeTable) add_rope_table(list);
  if (kind == OpKind::kRmsNorm) add_rms_norm(list);
  if (kind == OpKind::kSiluMul) add_silu_mul(list);
  if (kind == OpKind::kAdd) add_sums(list);
  if (kind == OpKind::kConcat) add_concat(list);
  if (kind == OpKind::kGatherRows) add_gather_rows(list);
}

}  // namespace troika::device::conformance
