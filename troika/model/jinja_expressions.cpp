// The interpreter's expressions, calls apart.
#include <optional>

#include "troika/model/jinja_arithmetic.h"
#include "troika/model/jinja_interpreter.h"
#include "troika/model/jinja_print.h"

namespace troika::model::jinja {

Result<Value> Interpreter::evaluate(const Expr& expr) {
  const Level level(depth_);
  line_ = expr.line;
  RETURN_IF_ERROR(check_depth());
  RETURN_IF_ERROR(heap_.spend(1));
  switch (expr.kind) {
    case ExprKind::kNone:
      return none_value();
    case ExprKind::kBool:
      return bool_value(expr.integer != 0);
    case ExprKind::kInteger:
      return integer_value(expr.integer);
    case ExprKind::kFloat:
      return float_value(expr.number);
    case ExprKind::kString:
      return heap_.view(expr.text, true);
    case ExprKind::kName:
      return look_up(expr.text);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return evaluate_list(expr);
    case ExprKind::kDict:
      return evaluate_dict(expr);
    case ExprKind::kAttribute: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
      line_ = expr.line;
      return attribute(heap_, value, expr.text);
    }
    case ExprKind::kSubscript:
      return evaluate_subscript(expr);
    case ExprKind::kSlice:
      break;
    case ExprKind::kCall:
      return evaluate_call(expr);
    case ExprKind::kFilter:
      return evaluate_filter(expr);
    case ExprKind::kTest:
      return evaluate_test(expr);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
      return bool_value(!is_true(value));
    }
    case ExprKind::kNegate: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
      return negate(value);
    }
    case ExprKind::kPlus: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
      return unary_plus(value);
    }
    case ExprKind::kArithmetic:
      return evaluate_arithmetic(expr);
    case ExprKind::kConcat:
      return evaluate_concat(expr);
    case ExprKind::kCompare:
      return evaluate_compare(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return evaluate_logic(expr);
    case ExprKind::kConditional:
      return evaluate_conditional(expr);
  }
  return make_error(ErrorCode::kInternal, "an expression that cannot be evaluated");
}

Result<std::vector<Value>> Interpreter::evaluate_from(const Expr& expr, size_t first) {
  std::vector<Value> values;
  values.reserve(expr.children.size() - first);
  for (size_t i = first; i < expr.children.size(); ++i) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[i]));
    values.push_back(value);
  }
  line_ = expr.line;
  return values;
}

Result<Value> Interpreter::evaluate_list(const Expr& expr) {
  ASSIGN_OR_RETURN(const std::vector<Value> items, evaluate_from(expr, 0));
  return heap_.sequence(expr.kind == ExprKind::kTuple ? SequenceKind::kTuple : SequenceKind::kList,
                        items);
}

Result<Value> Interpreter::evaluate_dict(const Expr& expr) {
  ASSIGN_OR_RETURN(const std::vector<Value> values, evaluate_from(expr, 0));
  std::vector<DictEntry> entries;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    entries.push_back(DictEntry{values[i], values[i + 1]});
  }
  return heap_.dict(entries);
}

Result<Value> Interpreter::evaluate_subscript(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
  const Expr& index = *expr.children[1];
  if (index.kind == ExprKind::kSlice) return evaluate_slice(value, index);
  ASSIGN_OR_RETURN(const Value key, evaluate(index));
  line_ = expr.line;
  return item(heap_, value, key);
}

Result<Value> Interpreter::evaluate_slice(const Value& value, const Expr& expr) {
  std::optional<int64_t> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!expr.children[i]) continue;
    ASSIGN_OR_RETURN(const Value part, evaluate(*expr.children[i]));
    if (part.is(ValueKind::kNone)) continue;
    ASSIGN_OR_RETURN(parts[i], integer_argument("slice", part));
  }
  line_ = expr.line;
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (value.is(ValueKind::kString)) {
    ASSIGN_OR_RETURN(const size_t size, length(heap_, value));
    ASSIGN_OR_RETURN(const SliceRange range, slice_range(size, parts[0], parts[1], parts[2]));
    return slice(heap_, *value.text, range, size == value.text->bytes.size());
  }
  if (!value.is_sequence(SequenceKind::kList) && !value.is_sequence(SequenceKind::kTuple) &&
      !value.is_sequence(SequenceKind::kRange)) {
    return undefined_value();
  }
  const auto items = value.sequence->items;
  ASSIGN_OR_RETURN(const SliceRange range, slice_range(items.size(), parts[0], parts[1], parts[2]));
  RETURN_IF_ERROR(heap_.spend(range.count / 4));
  std::vector<Value> out;
  for (size_t i = 0; i < range.count; ++i) {
    out.push_back(items[static_cast<size_t>(range.begin + static_cast<int64_t>(i) * range.step)]);
  }
  return heap_.sequence(value.sequence->kind, out);
}

Result<Value> Interpreter::evaluate_arithmetic(const Expr& expr) {
  ASSIGN_OR_RETURN(Value value, evaluate(*expr.children[0]));
  std::optional<TextBuilder> sum;  // of texts so far, so that a long chain copies each part once
  for (size_t i = 1; i < expr.children.size(); ++i) {
    ASSIGN_OR_RETURN(const Value next, evaluate(*expr.children[i]));
    line_ = expr.line;
    const Operator op = expr.operators[i - 1];
    if (op == Operator::kAdd && next.is(ValueKind::kString) &&
        (sum || value.is(ValueKind::kString))) {
      if (!sum) {
        sum.emplace();
        RETURN_IF_ERROR(append(*sum, *value.text));
      }
      RETURN_IF_ERROR(append(*sum, *next.text));
      continue;
    }
    if (sum) {
      ASSIGN_OR_RETURN(value, sum->finish(heap_));
      sum.reset();
    }
    ASSIGN_OR_RETURN(value, arithmetic(heap_, op, value, next));
  }
  return sum ? sum->finish(heap_) : Result<Value>(value);
}

Result<Value> Interpreter::evaluate_concat(const Expr& expr) {
  TextBuilder out;
  for (const ExprPtr& child : expr.children) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*child));
    ASSIGN_OR_RETURN(const Text* text, to_text(heap_, value));
    RETURN_IF_ERROR(append(out, *text));
  }
  return out.finish(heap_);
}

Result<Value> Interpreter::evaluate_compare(const Expr& expr) {
  ASSIGN_OR_RETURN(Value left, evaluate(*expr.children[0]));
  for (size_t i = 1; i < expr.children.size(); ++i) {
    ASSIGN_OR_RETURN(const Value right, evaluate(*expr.children[i]));
    line_ = expr.line;
    ASSIGN_OR_RETURN(const bool holds, relation(heap_, expr.operators[i - 1], left, right));
    if (!holds) return bool_value(false);
    left = right;
  }
  return bool_value(true);
}

Result<Value> Interpreter::evaluate_logic(const Expr& expr) {
  const bool stops_at = expr.kind == ExprKind::kOr;
  Value value;
  for (const ExprPtr& child : expr.children) {
    ASSIGN_OR_RETURN(value, evaluate(*child));
    if (is_true(value) == stops_at) break;
  }
  return value;
}

Result<Value> Interpreter::evaluate_conditional(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value condition, evaluate(*expr.children[1]));
  if (is_true(condition)) return evaluate(*expr.children[0]);
  if (expr.children[2]) return evaluate(*expr.children[2]);
  return undefined_value();
}

}  // namespace troika::model::jinja
