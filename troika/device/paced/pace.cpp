#include "troika/device/paced/pace.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "troika/soc/catalogue.h"
#include "troika/soc/execution.h"

namespace troika::device::paced {
namespace {

constexpr double kMaxStretch = 1e6;

Result<double> parse_stretch(std::string_view text) {
  double stretch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), stretch);
  if (error == std::errc() && end == text.data() + text.size() && stretch >= 1 &&
      stretch <= kMaxStretch) {
    return stretch;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "a paced device is stretched by a number from 1 to {}, not \"{}\"", kMaxStretch,
                    text);
}

// Rows that the unit computes, and the keys that they see in all.
struct Rows {
  int64_t count = 0;
  double keys = 0;
};

Rows rows_of(const soc::Unit& unit, const Program& program, const BatchView& batch,
             graph::RowCount counted) {
  Rows rows;
  rows.count = batch.row_count(counted);
  for (const int32_t position : batch.positions) rows.keys += position + 1.0;
  if (unit.static_graphs) rows.count = std::max(rows.count, program.max_rows);
  return rows;
}

double activation_bytes(const graph::Graph& graph, const graph::Op& op, int64_t rows) {
  int64_t width = graph.tensor(op.output).width * graph::dtype_bytes(graph.tensor(op.output).type);
  for (const graph::TensorId input : op.inputs) {
    width += graph.tensor(input).width * graph::dtype_bytes(graph.tensor(input).type);
  }
  return static_cast<double>(width) * static_cast<double>(rows);
}

std::optional<soc::Work> product(const soc::Unit& unit, const Program& program, graph::OpId id,
                                 int64_t rows) {
  const graph::Op& op = program.graph->op(id);
  soc::Product product;
  product.m = rows;
  product.n = program.graph->tensor(op.output).width;
  product.k = program.graph->tensor(op.inputs[0]).width;
  product.weight_bits = 8 * static_cast<double>(graph::weight_bytes(*program.graph, id)) /
                        (static_cast<double>(product.n) * static_cast<double>(product.k));
  product.weight_stationary = !program.input_stationary;
  return soc::stored_product_work(unit, product);
}

soc::Work attention(const soc::Unit& unit, const Program& program, const graph::Op& op,
                    const Rows& rows) {
  const auto width = static_cast<double>(op.heads.n_heads * op.heads.head_dim);
  const double macs = 2 * width * rows.keys;
  const double bytes = activation_bytes(*program.graph, op, rows.count);
  if (const auto work = soc::attention_work(unit, macs, bytes)) return *work;
  // A unit of which no attention is described: at the rate of its products.
  soc::Work work = soc::elementwise_work(unit, bytes);
  work.compute_us = 2 * macs / unit.paths.back().rate * 1e-6;
  return work;
}

}  // namespace

Result<Pace> parse_pace(std::string_view text) {
  Pace pace;
  std::string_view name = text;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    name = text.substr(0, at);
    ASSIGN_OR_RETURN(pace.stretch, parse_stretch(text.substr(at + 1)));
  }
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a paced device has the timing of CHIP.UNIT, as in snapdragon-8-gen-3.gpu, "
                      "not of \"{}\"",
                      name);
  }
  pace.chip = name.substr(0, dot);
  auto soc = soc::find(pace.chip);
  if (!soc) {
    return make_error(ErrorCode::kInvalidArgument, "chip \"{}\": {}", pace.chip,
                      soc.error().message);
  }
  const auto unit = soc->unit(name.substr(dot + 1));
  if (!unit || soc->units[*unit].paths.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "chip {} has no unit \"{}\" that computes products", pace.chip,
                      name.substr(dot + 1));
  }
  pace.unit = soc->units[*unit];
  return pace;
}

Result<Pace> pace_of_static_unit(std::string_view chip) {
  auto soc = soc::find(chip);
  if (!soc)
    return make_error(ErrorCode::kInvalidArgument, "chip \"{}\": {}", chip, soc.error().message);
  for (const soc::Unit& unit : soc->units) {
    if (unit.static_graphs && !unit.paths.empty()) {
      return parse_pace(fmt::format("{}.{}", chip, unit.name));
    }
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "chip {} has no unit with static graphs to pace to", chip);
}

Result<double> program_us(const soc::Unit& unit, const Program& program, const BatchView& batch) {
  double us = 0;
  for (const graph::OpId id : program.ops) {
    const graph::Op& op = program.graph->op(id);
    const Rows rows = rows_of(unit, program, batch, program.graph->tensor(op.output).rows);
    if (rows.count == 0) continue;
    if (op.kind == graph::OpKind::kMatMul) {
      const auto work = product(unit, program, id, rows.count);
      if (!work) {
        return make_error(ErrorCode::kUnsupported, "unit {} cannot have product {} of {} rows",
                          unit.name, program.graph->tensor(op.output).name, rows.count);
      }
      us += work->work_us();
    } else if (op.kind == graph::OpKind::kAttention) {
      us += attention(unit, program, op, rows).work_us();
    } else {
      us += soc::elementwise_work(unit, activation_bytes(*program.graph, op, rows.count)).work_us();
    }
  }
  return us;
}

}  // namespace troika::device::paced
