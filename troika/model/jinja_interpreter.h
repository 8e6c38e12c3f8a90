// Runs the syntax tree of a chat template on one conversation. Defined by subject: variables and
// output in jinja_interpreter.cpp; jinja_statements.cpp, jinja_expressions.cpp, jinja_calls.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/chat_template.h"
#include "troika/model/jinja_ast.h"
#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_text.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// Variables of one block; lives in the heap, since a macro may outlive the block it came from.
struct Scope {
  Scope* parent = nullptr;
  Binding* first = nullptr;
};

// What a statement asks of the loop around it.
enum class Flow { kNext, kBreak, kContinue };

// Borrows the input. For one run.
class Interpreter {
 public:
  Interpreter(const ChatTemplateInput& input, const ChatTemplateLimits& limits)
      : input_(input), heap_(limits) {}

  Result<std::vector<RenderedSpan>> run(const Body& body);

 private:
  // One level of nesting more while it lives.
  class Level {
   public:
    explicit Level(size_t& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    size_t& depth_;
  };

  // Set-up, variables, nesting and output.
  Status run_here(const Body& body);
  Status define_globals();
  Result<Scope*> new_scope(Scope* parent);
  // In the innermost scope.
  Status assign(std::string_view name, const Value& value);
  // The innermost of that name; undefined if there is none.
  Result<Value> look_up(const std::string& name);
  Status assign(const Target& target, const Value& value);
  Status check_depth() const;
  // To what output_ is now.
  Status emit(const Text& text);
  Status append(TextBuilder& out, const Text& text);
  // What a body prints, as a value; its variables are its own.
  Result<Value> capture(const Body& body, Scope* scope);

  // Statements.
  Result<Flow> execute(const Body& body);
  Result<Flow> execute(const Stmt& stmt);
  // Runs a body with variables of its own.
  Result<Flow> execute_inside(const Body& body);
  Result<Flow> execute_if(const Stmt& stmt);
  Result<Flow> execute_set_block(const Stmt& stmt);
  Result<Flow> execute_with(const Stmt& stmt);
  // The items of the loop that pass its filter.
  Result<std::span<const Value>> loop_items(const Stmt& stmt);
  Result<Flow> execute_for(const Stmt& stmt);

  // Expressions.
  Result<Value> evaluate(const Expr& expr);
  // The children from the `first` on.
  Result<std::vector<Value>> evaluate_from(const Expr& expr, size_t first);
  Result<Value> evaluate_list(const Expr& expr);
  Result<Value> evaluate_dict(const Expr& expr);
  Result<Value> evaluate_subscript(const Expr& expr);
  Result<Value> evaluate_slice(const Value& value, const Expr& expr);
  Result<Value> evaluate_arithmetic(const Expr& expr);
  Result<Value> evaluate_concat(const Expr& expr);
  Result<Value> evaluate_compare(const Expr& expr);
  Result<Value> evaluate_logic(const Expr& expr);
  Result<Value> evaluate_conditional(const Expr& expr);

  // Calls of functions, macros, methods, filters and tests.
  Result<Arguments> evaluate_arguments(const Expr& expr);
  Result<Value> evaluate_call(const Expr& expr);
  Result<Value> call_macro(const Macro& macro, const Arguments& arguments);
  Result<Value> evaluate_filter(const Expr& expr);
  Result<Value> evaluate_test(const Expr& expr);

  const ChatTemplateInput& input_;
  Heap heap_;
  TextBuilder document_;
  TextBuilder* output_ = &document_;
  Scope* scope_ = nullptr;
  Value captured_;  // what the filters of a block set begin with
  size_t depth_ = 0;
  int line_ = 1;  // of what runs now, for errors
};

}  // namespace troika::model::jinja
