#include "troika/model/jinja_parser.h"

#include <utility>

#include "troika/model/jinja_expression_parser.h"

namespace troika::model::jinja {
namespace {

// Takes the value of a Result<ExprPtr> or returns its error.
#define TRY_EXPR(lhs, expr) ASSIGN_OR_RETURN(ExprPtr lhs, expr)

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<Body> run() { return body({}); }

 private:
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

  int loops_ = 0;  // open loops of the current macro
};

#undef TRY_EXPR

}  // namespace

Result<Body> parse_template(std::string_view source, size_t max_depth) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens), max_depth).run();
}

}  // namespace troika::model::jinja
