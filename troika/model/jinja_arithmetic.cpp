#include "troika/model/jinja_arithmetic.h"

#include <cmath>
#include <limits>

#include "troika/model/jinja_text.h"

namespace troika::model::jinja {
namespace {

std::string_view symbol(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    default:
      return "?";
  }
}

tl::unexpected<Error> overflow(Operator op) {
  return make_error(ErrorCode::kInvalidData, "the result of '{}' does not fit 64 bits", symbol(op));
}

tl::unexpected<Error> by_zero() { return make_error(ErrorCode::kInvalidData, "division by zero"); }

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return by_zero();
    return float_value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return overflow(Operator::kPower);
    }
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) {
      return overflow(Operator::kPower);
    }
  }
  return integer_value(result);
}

Result<Value> integers(Operator op, int64_t a, int64_t b) {
  int64_t out = 0;
  const bool divides =
      op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return by_zero();
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &out) ? Result<Value>(overflow(op)) : integer_value(out);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &out) ? Result<Value>(overflow(op)) : integer_value(out);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &out) ? Result<Value>(overflow(op)) : integer_value(out);
    case Operator::kDivide:
      return float_value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide:
      if (b == -1) return integers(Operator::kSubtract, 0, a);
      return integer_value(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
    case Operator::kModulo:
      if (b == -1) return integer_value(0);
      return integer_value(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));
    default:
      return integer_power(a, b);
  }
}

Result<Value> floats(Operator op, double a, double b) {
  const bool divides =
      op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return by_zero();
  double rest = 0;
  if (op == Operator::kFloorDivide || op == Operator::kModulo) {
    rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    if (rest == 0) rest = std::copysign(0.0, b);
  }
  switch (op) {
    case Operator::kAdd:
      return float_value(a + b);
    case Operator::kSubtract:
      return float_value(a - b);
    case Operator::kMultiply:
      return float_value(a * b);
    case Operator::kDivide:
      return float_value(a / b);
    case Operator::kFloorDivide:
      return float_value(std::floor((a - rest) / b + 0.5));
    case Operator::kModulo:
      return float_value(rest);
    default:
      break;
  }
  if (a == 0 && b < 0) return by_zero();
  const double out = std::pow(a, b);
  if (std::isfinite(a) && std::isfinite(b) && !std::isfinite(out)) {
    return make_error(ErrorCode::kInvalidData, "'**' has no finite real result");
  }
  return float_value(out);
}

Result<Value> joined(Heap& heap, const Value& a, const Value& b) {
  std::vector<Value> items(a.sequence->items.begin(), a.sequence->items.end());
  items.insert(items.end(), b.sequence->items.begin(), b.sequence->items.end());
  return heap.sequence(a.sequence->kind, items);
}

Result<Value> repeated(Heap& heap, const Value& value, int64_t count) {
  if (value.is(ValueKind::kString)) return repeat(heap, *value.text, count);
  const std::span<const Value> items = value.sequence->items;
  if (count <= 0 || items.empty()) return heap.sequence(value.sequence->kind, {});
  const size_t most = heap.limits().max_memory_bytes / sizeof(Value) / items.size();
  if (static_cast<uint64_t>(count) > most) {
    return make_error(ErrorCode::kInvalidData, "a list repeated {} times needs more than {} bytes",
                      count, heap.limits().max_memory_bytes);
  }
  RETURN_IF_ERROR(heap.spend(items.size() * static_cast<size_t>(count) / 4));
  RETURN_IF_ERROR(heap.reserve(items.size() * static_cast<size_t>(count) * sizeof(Value)));
  std::vector<Value> out;
  for (int64_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  return heap.sequence(value.sequence->kind, out);
}

bool is_repeatable(const Value& v) {
  return v.is(ValueKind::kString) || v.is_sequence(SequenceKind::kList) ||
         v.is_sequence(SequenceKind::kTuple);
}

}  // namespace

Result<Value> arithmetic(Heap& heap, Operator op, const Value& a, const Value& b) {
  RETURN_IF_ERROR(heap.spend(1));
  if (a.is(ValueKind::kUndefined)) return undefined_error(a);
  if (b.is(ValueKind::kUndefined)) return undefined_error(b);
  if (a.is_integral() && b.is_integral()) return integers(op, a.as_integer(), b.as_integer());
  if (a.is_number() && b.is_number()) return floats(op, a.as_number(), b.as_number());
  if (op == Operator::kAdd && a.is(ValueKind::kString) && b.is(ValueKind::kString)) {
    const size_t size = a.text->bytes.size() + b.text->bytes.size();
    RETURN_IF_ERROR(heap.spend_copy(size));
    RETURN_IF_ERROR(heap.reserve(size));
    TextBuilder out;
    out.append(*a.text);
    out.append(*b.text);
    return out.finish(heap);
  }
  if (op == Operator::kAdd && a.is(ValueKind::kSequence) && is_repeatable(a) &&
      b.is_sequence(a.sequence->kind)) {
    return joined(heap, a, b);
  }
  if (op == Operator::kMultiply) {
    if (is_repeatable(a) && b.is_integral()) return repeated(heap, a, b.as_integer());
    if (is_repeatable(b) && a.is_integral()) return repeated(heap, b, a.as_integer());
  }
  if (op == Operator::kModulo && a.is(ValueKind::kString)) {
    return make_error(ErrorCode::kUnsupported, "'%' to format text is not supported");
  }
  return make_error(ErrorCode::kInvalidData, "'{}' does not work on a {} and a {}", symbol(op),
                    kind_name(a), kind_name(b));
}

Result<bool> relation(Heap& heap, Operator op, const Value& a, const Value& b) {
  RETURN_IF_ERROR(heap.spend(1));
  if (op == Operator::kEqual || op == Operator::kNotEqual) {
    ASSIGN_OR_RETURN(const bool same, equal(heap, a, b));
    return same == (op == Operator::kEqual);
  }
  if (op == Operator::kIn || op == Operator::kNotIn) {
    ASSIGN_OR_RETURN(const bool found, contains(heap, b, a));
    return found == (op == Operator::kIn);
  }
  ASSIGN_OR_RETURN(const int sign, compare(heap, a, b));
  const bool is_nan = (a.is(ValueKind::kFloat) && std::isnan(a.number)) ||
                      (b.is(ValueKind::kFloat) && std::isnan(b.number));
  if (is_nan) return false;
  switch (op) {
    case Operator::kLess:
      return sign < 0;
    case Operator::kLessEqual:
      return sign <= 0;
    case Operator::kGreater:
      return sign > 0;
    default:
      return sign >= 0;
  }
}

Result<Value> negate(const Value& value) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (value.is(ValueKind::kFloat)) return float_value(-value.number);
  if (value.is_integral()) return integers(Operator::kSubtract, 0, value.as_integer());
  return make_error(ErrorCode::kInvalidData, "'-' does not work on a {}", kind_name(value));
}

Result<Value> unary_plus(const Value& value) {
  if (value.is(ValueKind::kUndefined)) return undefined_error(value);
  if (value.is(ValueKind::kFloat)) return value;
  if (value.is_integral()) return integer_value(value.as_integer());
  return make_error(ErrorCode::kInvalidData, "'+' does not work on a {}", kind_name(value));
}

}  // namespace troika::model::jinja
