// The interpreter's statements.
#include "troika/model/jinja_interpreter.h"
#include "troika/model/jinja_print.h"

namespace troika::model::jinja {

Result<Flow> Interpreter::execute(const Body& body) {
  const Level level(depth_);
  RETURN_IF_ERROR(check_depth());
  for (const Stmt& stmt : body) {
    line_ = stmt.line;
    RETURN_IF_ERROR(heap_.spend(1));
    ASSIGN_OR_RETURN(const Flow flow, execute(stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::execute(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kText: {
      const Run run{stmt.text.size(), true};
      RETURN_IF_ERROR(emit(Text{stmt.text, std::span<const Run>(&run, 1)}));
      return Flow::kNext;
    }
    case StmtKind::kOutput: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*stmt.exprs[0]));
      ASSIGN_OR_RETURN(const Text* text, to_text(heap_, value));
      RETURN_IF_ERROR(emit(*text));
      return Flow::kNext;
    }
    case StmtKind::kIf:
      return execute_if(stmt);
    case StmtKind::kFor:
      return execute_for(stmt);
    case StmtKind::kSet: {
      ASSIGN_OR_RETURN(const Value value, evaluate(*stmt.exprs[0]));
      line_ = stmt.line;
      RETURN_IF_ERROR(assign(stmt.target, value));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock:
      return execute_set_block(stmt);
    case StmtKind::kMacro: {
      Value macro;
      macro.kind = ValueKind::kMacro;
      ASSIGN_OR_RETURN(macro.macro, heap_.make(Macro{&stmt, scope_}));
      RETURN_IF_ERROR(assign(stmt.text, macro));
      return Flow::kNext;
    }
    case StmtKind::kWith:
      return execute_with(stmt);
    case StmtKind::kGeneration:
      return execute_inside(stmt.bodies[0]);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::execute_inside(const Body& body) {
  Scope* outer = scope_;
  ASSIGN_OR_RETURN(scope_, new_scope(outer));
  auto flow = execute(body);
  scope_ = outer;
  return flow;
}

Result<Flow> Interpreter::execute_if(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    ASSIGN_OR_RETURN(const Value condition, evaluate(*stmt.exprs[i]));
    if (is_true(condition)) return execute(stmt.bodies[i]);
  }
  if (stmt.bodies.size() > stmt.exprs.size()) return execute(stmt.bodies.back());
  return Flow::kNext;
}

Result<Flow> Interpreter::execute_set_block(const Stmt& stmt) {
  ASSIGN_OR_RETURN(Scope * inner, new_scope(scope_));
  ASSIGN_OR_RETURN(Value value, capture(stmt.bodies[0], inner));
  line_ = stmt.line;
  if (stmt.exprs[0]) {
    captured_ = value;
    ASSIGN_OR_RETURN(value, evaluate(*stmt.exprs[0]));
  }
  RETURN_IF_ERROR(assign(stmt.target, value));
  return Flow::kNext;
}

Result<Flow> Interpreter::execute_with(const Stmt& stmt) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.exprs) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*expr));
    values.push_back(value);
  }
  Scope* outer = scope_;
  ASSIGN_OR_RETURN(scope_, new_scope(outer));
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(assign(stmt.parameters[i], values[i]));
  }
  auto flow = execute(stmt.bodies[0]);
  scope_ = outer;
  return flow;
}

Result<std::span<const Value>> Interpreter::loop_items(const Stmt& stmt) {
  ASSIGN_OR_RETURN(const Value iterable, evaluate(*stmt.exprs[0]));
  line_ = stmt.line;
  ASSIGN_OR_RETURN(const std::span<const Value> items, iterate(heap_, iterable));
  if (!stmt.exprs[1]) return items;
  std::vector<Value> kept;
  Scope* outer = scope_;
  for (const Value& item : items) {
    RETURN_IF_ERROR(heap_.spend(1));
    ASSIGN_OR_RETURN(scope_, new_scope(outer));
    RETURN_IF_ERROR(assign(stmt.target, item));
    ASSIGN_OR_RETURN(const Value passes, evaluate(*stmt.exprs[1]));
    if (is_true(passes)) kept.push_back(item);
  }
  scope_ = outer;
  ASSIGN_OR_RETURN(const Value list, heap_.list(kept));
  return list.sequence->items;
}

Result<Flow> Interpreter::execute_for(const Stmt& stmt) {
  ASSIGN_OR_RETURN(const auto items, loop_items(stmt));
  if (items.empty()) return execute_inside(stmt.bodies[1]);
  Value loop;
  loop.kind = ValueKind::kLoop;
  ASSIGN_OR_RETURN(loop.loop, heap_.make(Loop{items, 0, nullptr}));
  Scope* outer = scope_;
  for (size_t i = 0; i < items.size(); ++i) {
    line_ = stmt.line;
    RETURN_IF_ERROR(heap_.spend(1));
    loop.loop->index = i;
    ASSIGN_OR_RETURN(scope_, new_scope(outer));
    RETURN_IF_ERROR(assign("loop", loop));
    RETURN_IF_ERROR(assign(stmt.target, items[i]));
    ASSIGN_OR_RETURN(const Flow flow, execute(stmt.bodies[0]));
    if (flow == Flow::kBreak) break;
  }
  scope_ = outer;
  return Flow::kNext;
}

}  // namespace troika::model::jinja
