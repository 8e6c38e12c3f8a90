// From the source of a chat template to its syntax tree.
#pragma once

#include <cstddef>
#include <string_view>

#include "troika/base/result.h"
#include "troika/model/jinja_ast.h"

namespace troika::model::jinja {

// kInvalidData for what is no Jinja and for nesting beyond `max_depth`; kUnsupported for Jinja that
// the interpreter does not know. A filter or test that is not known is refused here unless it
// stands in a branch that may never run; there the interpreter refuses it.
Result<Body> parse_template(std::string_view source, size_t max_depth);

}  // namespace troika::model::jinja
