// What the interpreter calls: functions, macros, methods, filters, tests.
#include <optional>
#include <utility>

#include "troika/model/jinja_functions.h"
#include "troika/model/jinja_interpreter.h"

namespace troika::model::jinja {

Result<Arguments> Interpreter::evaluate_arguments(const Expr& expr) {
  Arguments out;
  ASSIGN_OR_RETURN(out.positional, evaluate_from(expr, 1));
  for (const Keyword& keyword : expr.keywords) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*keyword.value));
    out.keywords.emplace_back(keyword.name, value);
  }
  line_ = expr.line;
  return out;
}

Result<Value> Interpreter::evaluate_call(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value callee, evaluate(*expr.children[0]));
  ASSIGN_OR_RETURN(const Arguments arguments, evaluate_arguments(expr));
  switch (callee.kind) {
    case ValueKind::kUndefined:
      return undefined_error(callee);
    case ValueKind::kFunction:
      return call_function(heap_, callee.function, arguments, input_.now);
    case ValueKind::kMacro:
      return call_macro(*callee.macro, arguments);
    case ValueKind::kMethod:
      return call_method(heap_, *callee.method, arguments);
    case ValueKind::kLoop:
      return make_error(ErrorCode::kUnsupported, "recursive loops are not supported");
    default:
      return make_error(ErrorCode::kInvalidData, "a {} cannot be called", kind_name(callee));
  }
}

Result<Value> Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Stmt& definition = *macro.definition;
  const std::vector<std::string>& parameters = definition.parameters;
  if (arguments.positional.size() > parameters.size()) {
    return make_error(ErrorCode::kInvalidData, "the macro '{}' takes {} arguments, not {}",
                      definition.text, parameters.size(), arguments.positional.size());
  }
  std::vector<std::optional<Value>> values(parameters.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    size_t i = 0;
    while (i < parameters.size() && parameters[i] != name) ++i;
    RETURN_IF_ERROR(heap_.spend(i / 8));
    if (i == parameters.size() || values[i]) {
      return make_error(ErrorCode::kInvalidData, "the macro '{}' has no further argument '{}'",
                        definition.text, name);
    }
    values[i] = value;
  }
  ASSIGN_OR_RETURN(Scope * inner, new_scope(macro.scope));
  Scope* caller = std::exchange(scope_, inner);
  const size_t first_default = parameters.size() - definition.exprs.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!values[i] && i >= first_default) {
      ASSIGN_OR_RETURN(values[i], evaluate(*definition.exprs[i - first_default]));
    }
    RETURN_IF_ERROR(assign(parameters[i], values[i].value_or(undefined_value(&parameters[i]))));
  }
  scope_ = caller;
  return capture(definition.bodies[0], inner);
}

Result<Value> Interpreter::evaluate_filter(const Expr& expr) {
  const Filter filter = find_filter(expr.text);
  if (filter == nullptr) {
    return make_error(ErrorCode::kUnsupported, "the filter '{}' is not supported",
                      expr.text.substr(0, 40));
  }
  Value value = captured_;
  if (expr.children[0]) {
    ASSIGN_OR_RETURN(value, evaluate(*expr.children[0]));
  }
  ASSIGN_OR_RETURN(const Arguments arguments, evaluate_arguments(expr));
  return filter(heap_, value, arguments);
}

Result<Value> Interpreter::evaluate_test(const Expr& expr) {
  const Test test = find_test(expr.text);
  if (test == nullptr) {
    return make_error(ErrorCode::kUnsupported, "the test '{}' is not supported",
                      expr.text.substr(0, 40));
  }
  ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
  ASSIGN_OR_RETURN(const Arguments arguments, evaluate_arguments(expr));
  if (!arguments.keywords.empty()) {
    return make_error(ErrorCode::kUnsupported, "named arguments of a test");
  }
  ASSIGN_OR_RETURN(const bool result, test(heap_, value, arguments.positional));
  return bool_value(result);
}

}  // namespace troika::model::jinja
