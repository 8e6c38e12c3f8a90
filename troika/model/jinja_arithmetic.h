// The operators of the template language on values, as Python defines them; integers have 64 bits
// and overflow is an error.
#pragma once

#include "troika/base/result.h"
#include "troika/model/jinja_ast.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// kAdd to kPower.
Result<Value> arithmetic(Heap& heap, Operator op, const Value& a, const Value& b);
// kEqual to kNotIn.
Result<bool> relation(Heap& heap, Operator op, const Value& a, const Value& b);
Result<Value> negate(const Value& value);
Result<Value> unary_plus(const Value& value);

}  // namespace troika::model::jinja
