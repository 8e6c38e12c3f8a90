// The part of the parser that reads expressions, by recursive descent.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "troika/base/result.h"
#include "troika/model/jinja_ast.h"
#include "troika/model/jinja_token_stream.h"

namespace troika::model::jinja {

class ExpressionParser : protected TokenStream {
 public:
  using TokenStream::TokenStream;

 protected:
  Result<ExprPtr> tuple_or_expression(Names ends, bool conditional = true,
                                      bool in_parentheses = false);
  Result<ExprPtr> expression();
  Result<ExprPtr> filter(ExprPtr value);

  int branches_ = 0;  // open constructs whose inside may never run

 private:
  static ExprPtr make(ExprKind kind, int line, std::string text = {});
  // Adds a child within the bound on depth.
  Status add(Expr& parent, ExprPtr child) const;
  Status grow(Expr& parent, const Expr& child) const;

  // Loosest binding first.
  bool is_tuple_end(Names ends) const;
  Result<ExprPtr> conditional();
  // Refuses filters and tests that are not known anywhere in an expression that is sure to run.
  Status require_known(const Expr& expr) const;
  Result<ExprPtr> any_of();
  Result<ExprPtr> all_of();
  Result<ExprPtr> negation();
  bool take_comparison(Operator& op);
  Result<ExprPtr> comparison();
  using Symbols = std::initializer_list<std::pair<std::string_view, Operator>>;
  // operand (symbol operand)*, joined left to right.
  template <class Parse>
  Result<ExprPtr> chain(Symbols symbols, Parse operand);
  Result<ExprPtr> sum();
  Result<ExprPtr> concat();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary(bool with_filter);
  Result<ExprPtr> primary();
  Result<ExprPtr> name_or_constant(const Token& token);
  Result<ExprPtr> number(const Token& token);
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> postfix(ExprPtr value);
  Result<ExprPtr> filters_and_tests(ExprPtr value);
  Result<ExprPtr> attribute(ExprPtr value);
  Result<ExprPtr> subscript(ExprPtr value);
  Result<ExprPtr> slice_or_index();
  // (argument, ..., name=argument, ...)
  Status arguments(Expr& out);
  Result<ExprPtr> call(ExprPtr callee);
  Result<ExprPtr> test(ExprPtr value);
  bool begins_argument() const;
};

}  // namespace troika::model::jinja
