// The syntax tree of a chat template: what the parser makes and the interpreter walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troika::model::jinja {

enum class ExprKind : uint8_t {
  kNone,
  kBool,         // integer: 0 or 1
  kInteger,      // integer
  kFloat,        // number
  kString,       // text
  kName,         // text
  kTuple,        // children
  kList,         // children
  kDict,         // children: key, value, key, value, ...
  kAttribute,    // children[0].text
  kSubscript,    // children[0][children[1]]
  kSlice,        // start, stop, step; each may be null; only as children[1] of kSubscript
  kCall,         // children[0](children[1...], keywords)
  kFilter,       // children[0] | text(children[1...], keywords); children[0] null in a block set
  kTest,         // children[0] is text(children[1...], keywords)
  kNot,          // children[0]
  kNegate,       // children[0]
  kPlus,         // children[0]
  kArithmetic,   // children joined by operators, all of one precedence, left to right
  kConcat,       // children joined by ~
  kCompare,      // children joined by operators, chained as in Python
  kAnd,          // children
  kOr,           // children
  kConditional,  // children: value, condition, other value or null
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;
  ExprPtr value;
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  int line = 0;
  size_t depth = 1;  // of the tree below, so that neither walking nor destroying it can overflow
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Operator> operators;
  std::vector<ExprPtr> children;
  std::vector<Keyword> keywords;
};

// What `set` and `for` assign to: one name, several names (unpacking), or an attribute of a name.
struct Target {
  std::vector<std::string> names;
  bool unpack = false;
  std::string attribute;  // not empty: names[0].attribute
};

enum class StmtKind : uint8_t {
  kText,        // text
  kOutput,      // exprs[0]
  kIf,          // exprs[i] guards bodies[i]; one more body than exprs: else
  kFor,         // target, exprs: items, filter or null; bodies: loop, else (may be empty)
  kSet,         // target = exprs[0]
  kSetBlock,    // target = rendered bodies[0], through exprs[0] (filters) unless null
  kMacro,       // text(parameters) : bodies[0]; exprs: defaults of the last parameters
  kWith,        // parameters[i] = exprs[i] inside bodies[0]
  kGeneration,  // bodies[0]
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;
  Target target;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
};

}  // namespace troika::model::jinja
