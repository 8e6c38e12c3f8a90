#include "troika/model/jinja_interpreter.h"

#include <utility>

#include "troika/model/jinja_functions.h"

namespace troika::model::jinja {

Result<std::vector<RenderedSpan>> Interpreter::run(const Body& body) {
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

Status Interpreter::run_here(const Body& body) {
  ASSIGN_OR_RETURN(scope_, new_scope(nullptr));
  RETURN_IF_ERROR(define_globals());
  ASSIGN_OR_RETURN(scope_, new_scope(scope_));
  output_ = &document_;
  RETURN_IF_ERROR(execute(body));
  return {};
}

Status Interpreter::define_globals() {
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

Result<Scope*> Interpreter::new_scope(Scope* parent) { return heap_.make(Scope{parent, nullptr}); }

Status Interpreter::assign(std::string_view name, const Value& value) {
  return bind_variable(heap_, scope_->first, name, value);
}

Result<Value> Interpreter::look_up(const std::string& name) {
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

Status Interpreter::assign(const Target& target, const Value& value) {
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

Status Interpreter::check_depth() const {
  if (depth_ <= heap_.limits().max_depth) return {};
  return make_error(ErrorCode::kInvalidData, "nested deeper than {} levels",
                    heap_.limits().max_depth);
}

Status Interpreter::emit(const Text& text) {
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

Status Interpreter::append(TextBuilder& out, const Text& text) {
  RETURN_IF_ERROR(heap_.spend(1 + text.runs.size() / 8));
  RETURN_IF_ERROR(heap_.spend_copy(text.bytes.size()));
  RETURN_IF_ERROR(heap_.reserve(text.bytes.size()));
  out.append(text);
  return {};
}

Result<Value> Interpreter::capture(const Body& body, Scope* scope) {
  TextBuilder captured;
  TextBuilder* outer = std::exchange(output_, &captured);
  Scope* outer_scope = std::exchange(scope_, scope);
  auto flow = execute(body);
  output_ = outer;
  scope_ = outer_scope;
  RETURN_IF_ERROR(std::move(flow));
  return captured.finish(heap_);
}

}  // namespace troika::model::jinja
