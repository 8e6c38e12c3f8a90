#include "troika/model/jinja_parser.h"

#include <charconv>
#include <initializer_list>
#include <utility>

#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_lexer.h"
#include "troika/model/jinja_print.h"

namespace troika::model::jinja {
namespace {

// Takes the value of a Result<ExprPtr> or returns its error.
#define TRY_EXPR(lhs, expr) ASSIGN_OR_RETURN(ExprPtr lhs, expr)

class Parser {
 public:
  Parser(std::vector<Token> tokens, size_t max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  Result<Body> run() { return body({}); }

 private:
  using Names = std::initializer_list<std::string_view>;

  // ---- tokens
  const Token& now() const { return tokens_[position_]; }
  const Token& after() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  void next() {
    if (position_ + 1 < tokens_.size()) ++position_;
  }
  bool is(TokenKind kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  bool is_symbol(std::string_view text) const { return is(TokenKind::kOperator, text); }
  bool is_name(std::string_view text) const { return is(TokenKind::kName, text); }
  bool take_symbol(std::string_view text) { return is_symbol(text) && (next(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (next(), true); }

  template <class... Args>
  tl::unexpected<Error> fail(ErrorCode code, int line, fmt::format_string<Args...> format,
                             Args&&... args) const {
    return make_error(code, "chat template, line {}: {}", line,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kText: return "text";
      case TokenKind::kVariableBegin: return "'{{'";
      case TokenKind::kVariableEnd: return "'}}'";
      case TokenKind::kBlockBegin: return "'{%'";
      case TokenKind::kBlockEnd: return "'%}'";
      case TokenKind::kEnd: return "the end of the template";
      case TokenKind::kString: return "a string";
      default: return fmt::format("'{}'", token.text.substr(0, 40));
    }
  }

  tl::unexpected<Error> unexpected(std::string_view wanted) const {
    return fail(ErrorCode::kInvalidData, now().line, "expected {}, found {}", wanted,
                describe(now()));
  }

  Status expect(TokenKind kind, std::string_view wanted) {
    if (now().kind != kind) return unexpected(wanted);
    next();
    return {};
  }
  Status expect_symbol(std::string_view text) {
    if (!take_symbol(text)) return unexpected(fmt::format("'{}'", text));
    return {};
  }
  Status expect_name(std::string_view text) {
    if (!take_name(text)) return unexpected(fmt::format("'{}'", text));
    return {};
  }
  Result<std::string> any_name() {
    if (now().kind != TokenKind::kName) return unexpected("a name");
    std::string name = now().text;
    next();
    return name;
  }

  // Runs one level of recursive descent deeper, within the bound.
  template <class Parse>
  auto deeper(Parse parse) -> decltype(parse()) {
    if (depth_ >= max_depth_) {
      return fail(ErrorCode::kInvalidData, now().line, "nested deeper than {} levels", max_depth_);
    }
    ++depth_;
    auto result = parse();
    --depth_;
    return result;
  }

  // ---- nodes
  static ExprPtr make(ExprKind kind, int line, std::string text = {}) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    expr->text = std::move(text);
    return expr;
  }

  Status add(Expr& parent, ExprPtr child) const {
    if (child) RETURN_IF_ERROR(grow(parent, *child));
    parent.children.push_back(std::move(child));
    return {};
  }

  Status grow(Expr& parent, const Expr& child) const {
    parent.depth = std::max(parent.depth, child.depth + 1);
    if (parent.depth > max_depth_) {
      return fail(ErrorCode::kInvalidData, parent.line,
                  "an expression nested deeper than {} levels", max_depth_);
    }
    return {};
  }

  // ---- statements
  // Everything up to a block tag of one of these names (now() is then the name), or to the end of
  // the template if there are none.
  Result<Body> body(Names ends) {
    return deeper([&]() -> Result<Body> { return body_here(ends); });
  }

  Result<Body> body_here(Names ends) {
    const int begin = now().line;
    Body out;
    for (;;) {
      const Token& token = now();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() == 0) return out;
        return fail(ErrorCode::kInvalidData, begin, "the block around here has no '{}'",
                    *(ends.end() - 1));
      }
      if (token.kind == TokenKind::kText) {
        Stmt text;
        text.line = token.line;
        text.text = token.text;
        out.push_back(std::move(text));
        next();
      } else if (token.kind == TokenKind::kVariableBegin) {
        next();
        Stmt output;
        output.kind = StmtKind::kOutput;
        output.line = now().line;
        TRY_EXPR(value, tuple_or_expression({}));
        output.exprs.push_back(std::move(value));
        RETURN_IF_ERROR(expect(TokenKind::kVariableEnd, "'}}'"));
        out.push_back(std::move(output));
      } else {
        RETURN_IF_ERROR(expect(TokenKind::kBlockBegin, "a tag"));
        if (now().kind != TokenKind::kName) return unexpected("the name of a tag");
        for (const std::string_view end : ends) {
          if (now().text == end) return out;
        }
        ASSIGN_OR_RETURN(Stmt stmt, statement());
        RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "'%}'"));
        out.push_back(std::move(stmt));
      }
    }
  }

  // The body of a block whose opening tag has been read up to its '%}', and its end tag's name.
  Result<Body> block(Names ends) {
    RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "'%}'"));
    return body(ends);
  }

  Result<Body> whole_block(std::string_view end) {
    ASSIGN_OR_RETURN(Body out, block({end}));
    next();
    return out;
  }

  Result<Stmt> statement() {
    Stmt out;
    out.line = now().line;
    const std::string name = now().text;
    next();
    if (name == "if") return if_statement(std::move(out));
    if (name == "for") return for_statement(std::move(out));
    if (name == "set") return set_statement(std::move(out));
    if (name == "macro") return macro_statement(std::move(out));
    if (name == "with") return with_statement(std::move(out));
    if (name == "generation") {
      out.kind = StmtKind::kGeneration;
      ASSIGN_OR_RETURN(Body inner, whole_block("endgeneration"));
      out.bodies.push_back(std::move(inner));
      return out;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) {
        return fail(ErrorCode::kInvalidData, out.line, "'{}' outside of a loop", name);
      }
      out.kind = name == "break" ? StmtKind::kBreak : StmtKind::kContinue;
      return out;
    }
    if (name.rfind("end", 0) == 0 || name == "else" || name == "elif") {
      return fail(ErrorCode::kInvalidData, out.line, "unexpected tag '{}'", name.substr(0, 40));
    }
    return fail(ErrorCode::kUnsupported, out.line, "the tag '{}' is not supported",
                name.substr(0, 40));
  }

  Result<Stmt> if_statement(Stmt out) {
    out.kind = StmtKind::kIf;
    ++branches_;
    for (;;) {
      TRY_EXPR(condition, tuple_or_expression({}));
      out.exprs.push_back(std::move(condition));
      ASSIGN_OR_RETURN(Body inner, block({"elif", "else", "endif"}));
      out.bodies.push_back(std::move(inner));
      if (take_name("elif")) continue;
      if (take_name("else")) {
        ASSIGN_OR_RETURN(Body otherwise, block({"endif"}));
        out.bodies.push_back(std::move(otherwise));
      }
      --branches_;
      next();
      return out;
    }
  }

  Result<Stmt> for_statement(Stmt out) {
    out.kind = StmtKind::kFor;
    ASSIGN_OR_RETURN(out.target, target(false));
    RETURN_IF_ERROR(expect_name("in"));
    TRY_EXPR(items, tuple_or_expression({"recursive"}, false));
    out.exprs.push_back(std::move(items));
    ExprPtr filter;
    if (take_name("if")) {
      ASSIGN_OR_RETURN(filter, expression());
    }
    out.exprs.push_back(std::move(filter));
    if (is_name("recursive")) {
      return fail(ErrorCode::kUnsupported, now().line, "recursive loops are not supported");
    }
    ++loops_;
    ASSIGN_OR_RETURN(Body inner, block({"else", "endfor"}));
    --loops_;
    Body otherwise;
    if (take_name("else")) {
      ASSIGN_OR_RETURN(otherwise, block({"endfor"}));
    }
    next();
    out.bodies.push_back(std::move(inner));
    out.bodies.push_back(std::move(otherwise));
    return out;
  }

  Result<Stmt> set_statement(Stmt out) {
    ASSIGN_OR_RETURN(out.target, target(true));
    if (take_symbol("=")) {
      out.kind = StmtKind::kSet;
      TRY_EXPR(value, tuple_or_expression({}));
      out.exprs.push_back(std::move(value));
      return out;
    }
    out.kind = StmtKind::kSetBlock;
    ExprPtr filters;
    while (is_symbol("|")) {
      ASSIGN_OR_RETURN(filters, filter(std::move(filters)));
    }
    out.exprs.push_back(std::move(filters));
    ASSIGN_OR_RETURN(Body inner, whole_block("endset"));
    out.bodies.push_back(std::move(inner));
    return out;
  }

  Result<Stmt> macro_statement(Stmt out) {
    out.kind = StmtKind::kMacro;
    ASSIGN_OR_RETURN(out.text, any_name());
    RETURN_IF_ERROR(expect_symbol("("));
    while (!is_symbol(")")) {
      if (!out.parameters.empty()) RETURN_IF_ERROR(expect_symbol(","));
      ASSIGN_OR_RETURN(std::string parameter, any_name());
      out.parameters.push_back(std::move(parameter));
      if (take_symbol("=")) {
        TRY_EXPR(value, expression());
        out.exprs.push_back(std::move(value));
      } else if (!out.exprs.empty()) {
        return fail(ErrorCode::kInvalidData, now().line,
                    "a parameter without a default after one "
                    "that has a default");
      }
    }
    next();
    const int loops = std::exchange(loops_, 0);
    ASSIGN_OR_RETURN(Body inner, whole_block("endmacro"));
    loops_ = loops;
    out.bodies.push_back(std::move(inner));
    return out;
  }

  Result<Stmt> with_statement(Stmt out) {
    out.kind = StmtKind::kWith;
    while (now().kind != TokenKind::kBlockEnd) {
      if (!out.parameters.empty()) RETURN_IF_ERROR(expect_symbol(","));
      ASSIGN_OR_RETURN(std::string name, any_name());
      out.parameters.push_back(std::move(name));
      RETURN_IF_ERROR(expect_symbol("="));
      TRY_EXPR(value, expression());
      out.exprs.push_back(std::move(value));
    }
    ASSIGN_OR_RETURN(Body inner, whole_block("endwith"));
    out.bodies.push_back(std::move(inner));
    return out;
  }

  Result<Target> target(bool with_attribute) {
    Target out;
    const bool parenthesis = take_symbol("(");
    for (;;) {
      ASSIGN_OR_RETURN(std::string name, any_name());
      for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
        if (name == word) {
          return fail(ErrorCode::kInvalidData, now().line, "cannot assign to '{}'", name);
        }
      }
      out.names.push_back(std::move(name));
      if (with_attribute && out.names.size() == 1 && is_symbol(".")) {
        next();
        ASSIGN_OR_RETURN(out.attribute, any_name());
        return out;
      }
      if (!take_symbol(",")) break;
      out.unpack = true;
      if (now().kind != TokenKind::kName) break;
    }
    if (parenthesis) RETURN_IF_ERROR(expect_symbol(")"));
    return out;
  }

  // ---- expressions, loosest binding first
  bool is_tuple_end(Names ends) const {
    if (now().kind == TokenKind::kVariableEnd || now().kind == TokenKind::kBlockEnd) return true;
    if (is_symbol(")")) return true;
    for (const std::string_view end : ends) {
      if (is_name(end)) return true;
    }
    return false;
  }

  Result<ExprPtr> tuple_or_expression(Names ends, bool conditional = true,
                                      bool in_parentheses = false) {
    const int line = now().line;
    auto tuple = make(ExprKind::kTuple, line);
    bool is_tuple = false;
    while (!is_tuple_end(ends)) {
      TRY_EXPR(item, conditional ? expression() : deeper([&] { return any_of(); }));
      RETURN_IF_ERROR(add(*tuple, std::move(item)));
      if (!take_symbol(",")) break;
      is_tuple = true;
    }
    if (is_tuple) return tuple;
    if (!tuple->children.empty()) return std::move(tuple->children[0]);
    if (in_parentheses) return tuple;
    return unexpected("an expression");
  }

  Result<ExprPtr> expression() {
    return deeper([&]() -> Result<ExprPtr> { return conditional(); });
  }

  Result<ExprPtr> conditional() {
    const int line = now().line;
    ++branches_;  // whether it runs is known only at the end
    auto value_or = any_of();
    --branches_;
    ASSIGN_OR_RETURN(ExprPtr value, std::move(value_or));
    if (!is_name("if")) {
      if (branches_ == 0) RETURN_IF_ERROR(require_known(*value));
      return value;
    }
    while (take_name("if")) {
      auto out = make(ExprKind::kConditional, line);
      ++branches_;
      TRY_EXPR(condition, any_of());
      ExprPtr otherwise;
      if (take_name("else")) {
        ASSIGN_OR_RETURN(otherwise, expression());
      }
      --branches_;
      RETURN_IF_ERROR(add(*out, std::move(value)));
      RETURN_IF_ERROR(add(*out, std::move(condition)));
      RETURN_IF_ERROR(add(*out, std::move(otherwise)));
      value = std::move(out);
    }
    return value;
  }

  // Refuses filters and tests that are not known anywhere in an expression that is sure to run.
  Status require_known(const Expr& expr) const {
    if (expr.kind == ExprKind::kFilter && find_filter(expr.text) == nullptr) {
      return fail(ErrorCode::kUnsupported, expr.line, "the filter '{}' is not supported",
                  expr.text.substr(0, 40));
    }
    if (expr.kind == ExprKind::kTest && find_test(expr.text) == nullptr) {
      return fail(ErrorCode::kUnsupported, expr.line, "the test '{}' is not supported",
                  expr.text.substr(0, 40));
    }
    if (expr.kind == ExprKind::kConditional) return {};
    for (const ExprPtr& child : expr.children) {
      if (child) RETURN_IF_ERROR(require_known(*child));
    }
    return {};
  }

  Result<ExprPtr> any_of() {
    TRY_EXPR(first, all_of());
    if (!is_name("or")) return first;
    auto out = make(ExprKind::kOr, now().line);
    RETURN_IF_ERROR(add(*out, std::move(first)));
    while (take_name("or")) {
      TRY_EXPR(item, all_of());
      RETURN_IF_ERROR(add(*out, std::move(item)));
    }
    return out;
  }

  Result<ExprPtr> all_of() {
    TRY_EXPR(first, negation());
    if (!is_name("and")) return first;
    auto out = make(ExprKind::kAnd, now().line);
    RETURN_IF_ERROR(add(*out, std::move(first)));
    while (take_name("and")) {
      TRY_EXPR(item, negation());
      RETURN_IF_ERROR(add(*out, std::move(item)));
    }
    return out;
  }

  Result<ExprPtr> negation() {
    if (!is_name("not")) return comparison();
    auto out = make(ExprKind::kNot, now().line);
    next();
    TRY_EXPR(value, deeper([&] { return negation(); }));
    RETURN_IF_ERROR(add(*out, std::move(value)));
    return out;
  }

  bool take_comparison(Operator& op) {
    static constexpr std::pair<std::string_view, Operator> kSymbols[] = {
        {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
        {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};
    for (const auto& [symbol, value] : kSymbols) {
      if (!take_symbol(symbol)) continue;
      op = value;
      return true;
    }
    if (take_name("in")) {
      op = Operator::kIn;
      return true;
    }
    if (is_name("not") && after().kind == TokenKind::kName && after().text == "in") {
      next();
      next();
      op = Operator::kNotIn;
      return true;
    }
    return false;
  }

  Result<ExprPtr> comparison() {
    const int line = now().line;
    TRY_EXPR(first, sum());
    Operator op;
    if (!take_comparison(op)) return first;
    auto out = make(ExprKind::kCompare, line);
    RETURN_IF_ERROR(add(*out, std::move(first)));
    do {
      out->operators.push_back(op);
      TRY_EXPR(item, sum());
      RETURN_IF_ERROR(add(*out, std::move(item)));
    } while (take_comparison(op));
    return out;
  }

  using Symbols = std::initializer_list<std::pair<std::string_view, Operator>>;

  // operand (symbol operand)*, joined left to right.
  template <class Parse>
  Result<ExprPtr> chain(Symbols symbols, Parse operand) {
    const int line = now().line;
    TRY_EXPR(first, operand());
    ExprPtr out;
    for (bool found = true; found;) {
      found = false;
      for (const auto& [symbol, op] : symbols) {
        if (!take_symbol(symbol)) continue;
        found = true;
        if (!out) {
          out = make(ExprKind::kArithmetic, line);
          RETURN_IF_ERROR(add(*out, std::move(first)));
        }
        out->operators.push_back(op);
        TRY_EXPR(item, operand());
        RETURN_IF_ERROR(add(*out, std::move(item)));
        break;
      }
    }
    return out ? std::move(out) : std::move(first);
  }

  Result<ExprPtr> sum() {
    return chain({{"+", Operator::kAdd}, {"-", Operator::kSubtract}}, [&] { return concat(); });
  }

  Result<ExprPtr> concat() {
    TRY_EXPR(first, product());
    if (!is_symbol("~")) return first;
    auto out = make(ExprKind::kConcat, now().line);
    RETURN_IF_ERROR(add(*out, std::move(first)));
    while (take_symbol("~")) {
      TRY_EXPR(item, product());
      RETURN_IF_ERROR(add(*out, std::move(item)));
    }
    return out;
  }

  Result<ExprPtr> product() {
    return chain({{"*", Operator::kMultiply},
                  {"/", Operator::kDivide},
                  {"//", Operator::kFloorDivide},
                  {"%", Operator::kModulo}},
                 [&] { return power(); });
  }

  Result<ExprPtr> power() {
    return chain({{"**", Operator::kPower}}, [&] { return unary(true); });
  }

  Result<ExprPtr> unary(bool with_filter) {
    const int line = now().line;
    ExprPtr out;
    if (is_symbol("-") || is_symbol("+")) {
      out = make(is_symbol("-") ? ExprKind::kNegate : ExprKind::kPlus, line);
      next();
      TRY_EXPR(value, deeper([&] { return unary(false); }));
      RETURN_IF_ERROR(add(*out, std::move(value)));
    } else {
      ASSIGN_OR_RETURN(out, primary());
      ASSIGN_OR_RETURN(out, postfix(std::move(out)));
    }
    return with_filter ? filters_and_tests(std::move(out)) : Result<ExprPtr>(std::move(out));
  }

  Result<ExprPtr> primary() {
    const Token token = now();
    if (token.kind == TokenKind::kName) return name_or_constant(token);
    if (token.kind == TokenKind::kString) {
      auto out = make(ExprKind::kString, token.line);
      for (; now().kind == TokenKind::kString; next()) out->text += now().text;
      return out;
    }
    if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return number(token);
    if (take_symbol("(")) {
      TRY_EXPR(out, tuple_or_expression({}, true, true));
      RETURN_IF_ERROR(expect_symbol(")"));
      return out;
    }
    if (is_symbol("[")) return list();
    if (is_symbol("{")) return dict();
    return unexpected("an expression");
  }

  Result<ExprPtr> name_or_constant(const Token& token) {
    next();
    const std::string& text = token.text;
    if (text == "none" || text == "None") return make(ExprKind::kNone, token.line);
    const bool is_true = text == "true" || text == "True";
    if (is_true || text == "false" || text == "False") {
      auto out = make(ExprKind::kBool, token.line);
      out->integer = is_true ? 1 : 0;
      return out;
    }
    return make(ExprKind::kName, token.line, text);
  }

  Result<ExprPtr> number(const Token& token) {
    next();
    const char* begin = token.text.data();
    const char* end = begin + token.text.size();
    if (token.kind == TokenKind::kFloat) {
      auto out = make(ExprKind::kFloat, token.line);
      out->number = parse_double(token.text).value_or(0);  // the lexer took only digits
      return out;
    }
    auto out = make(ExprKind::kInteger, token.line);
    if (std::from_chars(begin, end, out->integer).ec != std::errc()) {
      return fail(ErrorCode::kInvalidData, token.line, "the integer {} is larger than 64 bits",
                  token.text.substr(0, 40));
    }
    return out;
  }

  Result<ExprPtr> list() {
    auto out = make(ExprKind::kList, now().line);
    next();
    while (!is_symbol("]")) {
      if (!out->children.empty()) {
        RETURN_IF_ERROR(expect_symbol(","));
        if (is_symbol("]")) break;
      }
      TRY_EXPR(item, expression());
      RETURN_IF_ERROR(add(*out, std::move(item)));
    }
    next();
    return out;
  }

  Result<ExprPtr> dict() {
    auto out = make(ExprKind::kDict, now().line);
    next();
    while (!is_symbol("}")) {
      if (!out->children.empty()) {
        RETURN_IF_ERROR(expect_symbol(","));
        if (is_symbol("}")) break;
      }
      TRY_EXPR(key, expression());
      RETURN_IF_ERROR(add(*out, std::move(key)));
      RETURN_IF_ERROR(expect_symbol(":"));
      TRY_EXPR(value, expression());
      RETURN_IF_ERROR(add(*out, std::move(value)));
    }
    next();
    return out;
  }

  Result<ExprPtr> postfix(ExprPtr value) {
    for (;;) {
      if (is_symbol(".")) {
        ASSIGN_OR_RETURN(value, attribute(std::move(value)));
      } else if (is_symbol("[")) {
        ASSIGN_OR_RETURN(value, subscript(std::move(value)));
      } else if (is_symbol("(")) {
        ASSIGN_OR_RETURN(value, call(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Result<ExprPtr> filters_and_tests(ExprPtr value) {
    for (;;) {
      if (is_symbol("|")) {
        ASSIGN_OR_RETURN(value, filter(std::move(value)));
      } else if (is_name("is")) {
        ASSIGN_OR_RETURN(value, test(std::move(value)));
      } else if (is_symbol("(")) {
        ASSIGN_OR_RETURN(value, call(std::move(value)));
      } else {
        return value;
      }
    }
  }

  Result<ExprPtr> attribute(ExprPtr value) {
    const int line = now().line;
    next();
    if (now().kind == TokenKind::kInteger) {
      auto out = make(ExprKind::kSubscript, line);
      RETURN_IF_ERROR(add(*out, std::move(value)));
      TRY_EXPR(index, number(Token(now())));
      RETURN_IF_ERROR(add(*out, std::move(index)));
      return out;
    }
    ASSIGN_OR_RETURN(std::string name, any_name());
    auto out = make(ExprKind::kAttribute, line, std::move(name));
    RETURN_IF_ERROR(add(*out, std::move(value)));
    return out;
  }

  Result<ExprPtr> subscript(ExprPtr value) {
    auto out = make(ExprKind::kSubscript, now().line);
    next();
    RETURN_IF_ERROR(add(*out, std::move(value)));
    TRY_EXPR(index, slice_or_index());
    RETURN_IF_ERROR(add(*out, std::move(index)));
    if (is_symbol(",")) {
      return fail(ErrorCode::kUnsupported, now().line, "several indexes in one subscript");
    }
    RETURN_IF_ERROR(expect_symbol("]"));
    return out;
  }

  Result<ExprPtr> slice_or_index() {
    auto out = make(ExprKind::kSlice, now().line);
    ExprPtr part;
    if (!is_symbol(":")) {
      ASSIGN_OR_RETURN(part, expression());
      if (!is_symbol(":")) return part;
    }
    for (int i = 0; i < 3; ++i) {
      RETURN_IF_ERROR(add(*out, std::move(part)));
      part = nullptr;
      if (i < 2 && take_symbol(":") && !is_symbol(":") && !is_symbol("]")) {
        ASSIGN_OR_RETURN(part, expression());
      }
    }
    return out;
  }

  // (argument, ..., name=argument, ...)
  Status arguments(Expr& out) {
    RETURN_IF_ERROR(expect_symbol("("));
    for (bool first = true; !is_symbol(")"); first = false) {
      if (!first) {
        RETURN_IF_ERROR(expect_symbol(","));
        if (is_symbol(")")) break;
      }
      if (is_symbol("*") || is_symbol("**")) {
        return fail(ErrorCode::kUnsupported, now().line, "unpacked arguments ({})", now().text);
      }
      if (now().kind == TokenKind::kName && after().kind == TokenKind::kOperator &&
          after().text == "=") {
        Keyword keyword;
        keyword.name = now().text;
        next();
        next();
        ASSIGN_OR_RETURN(keyword.value, expression());
        RETURN_IF_ERROR(grow(out, *keyword.value));
        out.keywords.push_back(std::move(keyword));
        continue;
      }
      if (!out.keywords.empty()) return unexpected("a named argument");
      TRY_EXPR(value, expression());
      RETURN_IF_ERROR(add(out, std::move(value)));
    }
    next();
    return {};
  }

  Result<ExprPtr> call(ExprPtr callee) {
    auto out = make(ExprKind::kCall, now().line);
    RETURN_IF_ERROR(add(*out, std::move(callee)));
    RETURN_IF_ERROR(arguments(*out));
    return out;
  }

  Result<ExprPtr> filter(ExprPtr value) {
    const int line = now().line;
    next();
    ASSIGN_OR_RETURN(std::string name, any_name());
    auto out = make(ExprKind::kFilter, line, std::move(name));
    RETURN_IF_ERROR(add(*out, std::move(value)));
    if (is_symbol("(")) RETURN_IF_ERROR(arguments(*out));
    return out;
  }

  Result<ExprPtr> test(ExprPtr value) {
    const int line = now().line;
    next();
    const bool negated = take_name("not");
    ASSIGN_OR_RETURN(std::string name, any_name());
    auto out = make(ExprKind::kTest, line, std::move(name));
    RETURN_IF_ERROR(add(*out, std::move(value)));
    if (is_symbol("(")) {
      RETURN_IF_ERROR(arguments(*out));
    } else if (begins_argument()) {
      TRY_EXPR(argument, primary());
      ASSIGN_OR_RETURN(argument, postfix(std::move(argument)));
      RETURN_IF_ERROR(add(*out, std::move(argument)));
    }
    if (!negated) return out;
    auto inverse = make(ExprKind::kNot, line);
    RETURN_IF_ERROR(add(*inverse, std::move(out)));
    return inverse;
  }

  bool begins_argument() const {
    switch (now().kind) {
      case TokenKind::kString:
      case TokenKind::kInteger:
      case TokenKind::kFloat: return true;
      case TokenKind::kOperator: return now().text == "[" || now().text == "{";
      case TokenKind::kName:
        return !is_name("else") && !is_name("or") && !is_name("and") && !is_name("is") &&
               !is_name("if") && !is_name("not") && !is_name("in");
      default: return false;
    }
  }

  std::vector<Token> tokens_;
  size_t max_depth_;
  size_t position_ = 0;
  size_t depth_ = 0;
  int branches_ = 0;  // open constructs whose inside may never run
  int loops_ = 0;     // open loops of the current macro
};

#undef TRY_EXPR

}  // namespace

Result<Body> parse_template(std::string_view source, size_t max_depth) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens), max_depth).run();
}

}  // namespace troika::model::jinja
