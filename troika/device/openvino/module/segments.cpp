#include "troika/device/openvino/module/segments.h"

#include <algorithm>

namespace troika::device::openvino {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

bool contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A graph passes values from operator to operator; what goes through a window of a tensor, or
// replaces one, goes through memory.
bool needs_memory(const Program& program, const Segment& segment, const Op& op) {
  const graph::Graph& graph = *program.graph;
  return std::any_of(segment.ops.begin(), segment.ops.end(), [&](graph::OpId id) {
    const TensorId written = graph.op(id).output;
    return (written == op.output || graph.overlap(written, op.output)) ||
           std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
             return input != written && graph.overlap(input, written);
           });
  });
}

class Cutter {
 public:
  Cutter(const Program& program, GraphUse use)
      : program_(program), graph_(*program.graph), use_(use) {}

  std::vector<Segment> cut() {
    for (const graph::OpId id : program_.ops) {
      const Op& op = graph_.op(id);
      if (segments_.empty() || !joins(segments_.back(), op)) {
        Segment segment;
        segment.on_host = on_host(op);
        segment.one_product = use_ == GraphUse::kProducts && !segment.on_host;
        segment.rows = graph_.tensor(op.output).rows;
        segments_.push_back(std::move(segment));
      }
      segments_.back().ops.push_back(id);
    }
    for (size_t i = 0; i < segments_.size(); ++i) find_edges(i);
    return std::move(segments_);
  }

 private:
  bool on_host(const Op& op) const {
    return use_ == GraphUse::kProducts ? op.kind != OpKind::kMatMul : runs_on_host(op.kind);
  }

  bool joins(const Segment& segment, const Op& op) const {
    if (segment.on_host != on_host(op)) return false;
    if (segment.on_host) return true;
    if (segment.rows != graph_.tensor(op.output).rows || needs_memory(program_, segment, op)) {
      return false;
    }
    const Op& first = graph_.op(segment.ops.front());
    return !segment.one_product ||
           (first.inputs[0] == op.inputs[0] && first.k_begin == op.k_begin &&
            first.weight->type == op.weight->type);
  }

  bool read_outside(size_t segment, TensorId id) const {
    if (contains(program_.outputs, id)) return true;
    for (const TensorId output : program_.outputs) {
      if (graph_.overlap(output, id)) return true;
    }
    for (size_t later = segment + 1; later < segments_.size(); ++later) {
      for (const graph::OpId op : segments_[later].ops) {
        for (const TensorId input : graph_.op(op).inputs) {
          if (input == id || graph_.overlap(input, id)) return true;
        }
      }
    }
    return false;
  }

  void find_edges(size_t index) {
    Segment& segment = segments_[index];
    if (segment.on_host) return;
    std::vector<TensorId> read;
    std::vector<TensorId> written;
    for (const graph::OpId id : segment.ops) {
      const Op& op = graph_.op(id);
      for (const TensorId input : op.inputs) {
        if (contains(written, input) || contains(read, input)) continue;
        read.push_back(input);
        segment.inputs.push_back(program_.index_of(input));
      }
      written.push_back(op.output);
    }
    for (const TensorId id : written) {
      if (segment.one_product || read_outside(index, id))
        segment.outputs.push_back(program_.index_of(id));
    }
  }

  const Program& program_;
  const graph::Graph& graph_;
  const GraphUse use_;
  std::vector<Segment> segments_;
};

}  // namespace

bool runs_on_host(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbed:
    case OpKind::kRopeTable:
    case OpKind::kKvWrite:
    case OpKind::kAttention:
    case OpKind::kGatherRows:
      return true;
    case OpKind::kRmsNorm:
    case OpKind::kMatMul:
    case OpKind::kRope:
    case OpKind::kSiluMul:
    case OpKind::kAdd:
    case OpKind::kConcat:
      return false;
  }
  return true;
}

Result<std::vector<Segment>> make_segments(const Program& program, GraphUse use) {
  for (const graph::OpId id : program.ops) {
    const Op& op = program.graph->op(id);
    std::vector<TensorId> used = op.inputs;
    used.push_back(op.output);
    for (const TensorId tensor : used) {
      if (contains(program.tensors, tensor)) continue;
      return make_error(ErrorCode::kInvalidArgument,
                        "tensor {} of a {} is not among its program's tensors",
                        program.graph->tensor(tensor).name, to_string(op.kind));
    }
  }
  return Cutter(program, use).cut();
}

}  // namespace troika::device::openvino
