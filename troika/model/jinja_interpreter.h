// Runs the syntax tree of a chat template on one conversation.
#pragma once

#include <vector>

#include "troika/base/result.h"
#include "troika/model/chat_template.h"
#include "troika/model/jinja_ast.h"

namespace troika::model::jinja {

Result<std::vector<RenderedSpan>> run_template(const Body& body, const ChatTemplateInput& input,
                                               const ChatTemplateLimits& limits);

}  // namespace troika::model::jinja
