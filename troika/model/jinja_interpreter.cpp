#include "troika/model/jinja_interpreter.h"

#include <optional>
#include <utility>

#include "troika/model/jinja_arithmetic.h"
#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_functions.h"
#include "troika/model/jinja_print.h"
#include "troika/model/jinja_text.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// Variables of one block; lives in the heap, since a macro may outlive the block it came from.
struct Scope {
  Scope* parent = nullptr;
  Binding* first = nullptr;
};

namespace {

// What a statement asks of the loop around it.
enum class Flow { kNext, kBreak, kContinue };

class Interpreter {
 public:
  Interpreter(const ChatTemplateInput& input, const ChatTemplateLimits& limits)
      : input_(input), heap_(limits) {}

  Result<std::vector<RenderedSpan>> run(const Body& body) {
    auto done = run_here(body);
    if (!done) {
      Error& error = done.error();
      if (error.code == ErrorCode::kInvalidArgument) {  // only raise_exception() gives it
        return make_error(error.code, "the chat template refuses the conversation: {} (line {})",
                          error.message, line_);
      }
      return make_error(error.code, "chat template, line {}: {}", line_, error.message);
    }
    std::vector<RenderedSpan> spans;
    size_t offset = 0;
    for (const Run& run : output_->runs()) {
      spans.push_back(RenderedSpan{output_->bytes().substr(offset, run.size), run.from_template});
      offset += run.size;
    }
    return spans;
  }

 private:
  // ---- set-up
  Status run_here(const Body& body) {
    ASSIGN_OR_RETURN(scope_, new_scope(nullptr));
    RETURN_IF_ERROR(define_globals());
    ASSIGN_OR_RETURN(scope_, new_scope(scope_));
    output_ = &document_;
    RETURN_IF_ERROR(execute(body));
    return {};
  }

  Status define_globals() {
    std::vector<Value> messages;
    for (const ChatMessage& message : input_.messages) {
      DictEntry entries[2];
      ASSIGN_OR_RETURN(entries[0].key, heap_.view("role", true));
      ASSIGN_OR_RETURN(entries[0].value, heap_.view(message.role, false));
      ASSIGN_OR_RETURN(entries[1].key, heap_.view("content", true));
      ASSIGN_OR_RETURN(entries[1].value, heap_.view(message.content, false));
      ASSIGN_OR_RETURN(Value one, heap_.dict(entries));
      messages.push_back(one);
    }
    ASSIGN_OR_RETURN(const Value list, heap_.list(messages));
    RETURN_IF_ERROR(assign("messages", list));
    ASSIGN_OR_RETURN(const Value bos, heap_.view(input_.bos_token, true));
    RETURN_IF_ERROR(assign("bos_token", bos));
    ASSIGN_OR_RETURN(const Value eos, heap_.view(input_.eos_token, true));
    RETURN_IF_ERROR(assign("eos_token", eos));
    RETURN_IF_ERROR(assign("add_generation_prompt", bool_value(input_.add_generation_prompt)));
    RETURN_IF_ERROR(assign("tools", none_value()));
    RETURN_IF_ERROR(assign("documents", none_value()));
    RETURN_IF_ERROR(assign("range", function_value(Function::kRange)));
    RETURN_IF_ERROR(assign("namespace", function_value(Function::kNamespace)));
    RETURN_IF_ERROR(assign("dict", function_value(Function::kDict)));
    RETURN_IF_ERROR(assign("raise_exception", function_value(Function::kRaiseException)));
    if (!input_.now) return {};
    return assign("strftime_now", function_value(Function::kStrftimeNow));
  }

  // ---- variables
  Result<Scope*> new_scope(Scope* parent) { return heap_.make(Scope{parent, nullptr}); }

  Status assign(std::string_view name, const Value& value) {
    return bind_variable(heap_, scope_->first, name, value);
  }

  Result<Value> look_up(const std::string& name) {
    size_t visited = 0;
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
      for (const Binding* b = scope->first; b != nullptr; b = b->next) {
        if (b->name == name) {
          RETURN_IF_ERROR(heap_.spend(visited / 16));
          return b->value;
        }
        ++visited;
      }
    }
    RETURN_IF_ERROR(heap_.spend(visited / 16));
    if (name == "cycler" || name == "joiner" || name == "lipsum") {
      return make_error(ErrorCode::kUnsupported, "the function '{}' is not supported", name);
    }
    return undefined_value(&name);
  }

  Status assign(const Target& target, const Value& value) {
    if (!target.attribute.empty()) {
      ASSIGN_OR_RETURN(const Value space, look_up(target.names[0]));
      if (!space.is(ValueKind::kNamespace)) {
        return make_error(ErrorCode::kInvalidData, "'{}' is no namespace, so '{}.{}' cannot be set",
                          target.names[0], target.names[0], target.attribute);
      }
      return bind_variable(heap_, space.space->first, target.attribute, value);
    }
    if (!target.unpack) return assign(target.names[0], value);
    if (value.is(ValueKind::kUndefined)) return undefined_error(value);
    ASSIGN_OR_RETURN(const auto items, iterate(heap_, value));
    if (items.size() != target.names.size()) {
      return make_error(ErrorCode::kInvalidData, "{} values for {} names", items.size(),
                        target.names.size());
    }
    for (size_t i = 0; i < items.size(); ++i) RETURN_IF_ERROR(assign(target.names[i], items[i]));
    return {};
  }

  // ---- nesting
  class Level {
   public:
    explicit Level(size_t& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    size_t& depth_;
  };

  Status check_depth() const {
    if (depth_ <= heap_.limits().max_depth) return {};
    return make_error(ErrorCode::kInvalidData, "nested deeper than {} levels",
                      heap_.limits().max_depth);
  }

  // ---- output
  Status emit(const Text& text) {
    const size_t size = text.bytes.size();
    if (size > heap_.limits().max_output_bytes - output_->size()) {
      return make_error(ErrorCode::kInvalidData, "the output is longer than {} bytes",
                        heap_.limits().max_output_bytes);
    }
    RETURN_IF_ERROR(heap_.spend(text.runs.size() / 8));
    RETURN_IF_ERROR(heap_.spend_copy(size));
    if (output_ != &document_) RETURN_IF_ERROR(heap_.reserve(size));
    output_->append(text);
    return {};
  }

  // What a body prints, as a value; its variables are its own.
  Result<Value> capture(const Body& body, Scope* scope) {
    TextBuilder captured;
    TextBuilder* outer = std::exchange(output_, &captured);
    Scope* outer_scope = std::exchange(scope_, scope);
    auto flow = execute(body);
    output_ = outer;
    scope_ = outer_scope;
    RETURN_IF_ERROR(std::move(flow));
    return captured.finish(heap_);
  }

  // ---- statements
  Result<Flow> execute(const Body& body) {
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

  Result<Flow> execute(const Stmt& stmt) {
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

  // Runs a body with variables of its own.
  Result<Flow> execute_inside(const Body& body) {
    Scope* outer = scope_;
    ASSIGN_OR_RETURN(scope_, new_scope(outer));
    auto flow = execute(body);
    scope_ = outer;
    return flow;
  }

  Result<Flow> execute_if(const Stmt& stmt) {
    for (size_t i = 0; i < stmt.exprs.size(); ++i) {
      ASSIGN_OR_RETURN(const Value condition, evaluate(*stmt.exprs[i]));
      if (is_true(condition)) return execute(stmt.bodies[i]);
    }
    if (stmt.bodies.size() > stmt.exprs.size()) return execute(stmt.bodies.back());
    return Flow::kNext;
  }

  Result<Flow> execute_set_block(const Stmt& stmt) {
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

  Result<Flow> execute_with(const Stmt& stmt) {
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

  // The items of the loop that pass its filter.
  Result<std::span<const Value>> loop_items(const Stmt& stmt) {
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

  Result<Flow> execute_for(const Stmt& stmt) {
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

  // ---- expressions
  Result<Value> evaluate(const Expr& expr) {
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

  Result<std::vector<Value>> evaluate_from(const Expr& expr, size_t first) {
    std::vector<Value> values;
    values.reserve(expr.children.size() - first);
    for (size_t i = first; i < expr.children.size(); ++i) {
      ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[i]));
      values.push_back(value);
    }
    line_ = expr.line;
    return values;
  }

  Result<Value> evaluate_list(const Expr& expr) {
    ASSIGN_OR_RETURN(const std::vector<Value> items, evaluate_from(expr, 0));
    return heap_.sequence(
        expr.kind == ExprKind::kTuple ? SequenceKind::kTuple : SequenceKind::kList, items);
  }

  Result<Value> evaluate_dict(const Expr& expr) {
    ASSIGN_OR_RETURN(const std::vector<Value> values, evaluate_from(expr, 0));
    std::vector<DictEntry> entries;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      entries.push_back(DictEntry{values[i], values[i + 1]});
    }
    return heap_.dict(entries);
  }

  Result<Value> evaluate_subscript(const Expr& expr) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*expr.children[0]));
    const Expr& index = *expr.children[1];
    if (index.kind == ExprKind::kSlice) return evaluate_slice(value, index);
    ASSIGN_OR_RETURN(const Value key, evaluate(index));
    line_ = expr.line;
    return item(heap_, value, key);
  }

  Result<Value> evaluate_slice(const Value& value, const Expr& expr) {
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
    ASSIGN_OR_RETURN(const SliceRange range,
                     slice_range(items.size(), parts[0], parts[1], parts[2]));
    RETURN_IF_ERROR(heap_.spend(range.count / 4));
    std::vector<Value> out;
    for (size_t i = 0; i < range.count; ++i) {
      out.push_back(items[static_cast<size_t>(range.begin + static_cast<int64_t>(i) * range.step)]);
    }
    return heap_.sequence(value.sequence->kind, out);
  }

  Result<Arguments> evaluate_arguments(const Expr& expr) {
    Arguments out;
    ASSIGN_OR_RETURN(out.positional, evaluate_from(expr, 1));
    for (const Keyword& keyword : expr.keywords) {
      ASSIGN_OR_RETURN(const Value value, evaluate(*keyword.value));
      out.keywords.emplace_back(keyword.name, value);
    }
    line_ = expr.line;
    return out;
  }

  Result<Value> evaluate_call(const Expr& expr) {
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

  Result<Value> call_macro(const Macro& macro, const Arguments& arguments) {
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

  Result<Value> evaluate_filter(const Expr& expr) {
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

  Result<Value> evaluate_test(const Expr& expr) {
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

  Result<Value> evaluate_arithmetic(const Expr& expr) {
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

  Status append(TextBuilder& out, const Text& text) {
    RETURN_IF_ERROR(heap_.spend(1 + text.runs.size() / 8));
    RETURN_IF_ERROR(heap_.spend_copy(text.bytes.size()));
    RETURN_IF_ERROR(heap_.reserve(text.bytes.size()));
    out.append(text);
    return {};
  }

  Result<Value> evaluate_concat(const Expr& expr) {
    TextBuilder out;
    for (const ExprPtr& child : expr.children) {
      ASSIGN_OR_RETURN(const Value value, evaluate(*child));
      ASSIGN_OR_RETURN(const Text* text, to_text(heap_, value));
      RETURN_IF_ERROR(append(out, *text));
    }
    return out.finish(heap_);
  }

  Result<Value> evaluate_compare(const Expr& expr) {
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

  Result<Value> evaluate_logic(const Expr& expr) {
    const bool stops_at = expr.kind == ExprKind::kOr;
    Value value;
    for (const ExprPtr& child : expr.children) {
      ASSIGN_OR_RETURN(value, evaluate(*child));
      if (is_true(value) == stops_at) break;
    }
    return value;
  }

  Result<Value> evaluate_conditional(const Expr& expr) {
    ASSIGN_OR_RETURN(const Value condition, evaluate(*expr.children[1]));
    if (is_true(condition)) return evaluate(*expr.children[0]);
    if (expr.children[2]) return evaluate(*expr.children[2]);
    return undefined_value();
  }

  const ChatTemplateInput& input_;
  Heap heap_;
  TextBuilder document_;
  TextBuilder* output_ = &document_;
  Scope* scope_ = nullptr;
  Value captured_;  // what the filters of a block set begin with
  size_t depth_ = 0;
  int line_ = 1;  // of what runs now, for errors
};

}  // namespace

Result<std::vector<RenderedSpan>> run_template(const Body& body, const ChatTemplateInput& input,
                                               const ChatTemplateLimits& limits) {
  return Interpreter(input, limits).run(body);
}

}  // namespace troika::model::jinja
