#include "troika/model/jinja_functions.h"

#include <utility>
#include <vector>

#include "troika/model/jinja_print.h"
#include "troika/model/jinja_time.h"

namespace troika::model::jinja {
namespace {

// Python's sandbox for templates has the same bound.
constexpr uint64_t kMaxRange = 100'000;

Result<Value> make_range(Heap& heap, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const Bound bound, bind("range", arguments, {"start", "stop", "step"}, 1));
  int64_t parts[3] = {0, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    if (!bound[i]) continue;
    ASSIGN_OR_RETURN(parts[i], integer_argument("range", *bound[i]));
  }
  if (!bound[1]) parts[1] = std::exchange(parts[0], 0);
  const auto [start, stop, step] = parts;
  if (step == 0) return make_error(ErrorCode::kInvalidData, "range: the step is 0");
  uint64_t count = 0;
  if (step > 0 ? start < stop : start > stop) {
    const auto low = static_cast<uint64_t>(step > 0 ? start : stop);
    const auto high = static_cast<uint64_t>(step > 0 ? stop : start);
    const uint64_t stride =
        step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
    count = (high - low - 1) / stride + 1;
  }
  if (count > kMaxRange) {
    return make_error(ErrorCode::kInvalidData, "range: {} items, more than {}", count, kMaxRange);
  }
  RETURN_IF_ERROR(heap.spend(count));
  std::vector<Value> items;
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(integer_value(start + static_cast<int64_t>(i) * step));
  }
  return heap.sequence(SequenceKind::kRange, items);
}

Result<Value> make_dict(Heap& heap, const Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    return make_error(ErrorCode::kInvalidData, "dict takes at most one unnamed argument");
  }
  std::vector<DictEntry> entries;
  if (!arguments.positional.empty()) {
    const Value& base = arguments.positional[0];
    if (!base.is(ValueKind::kDict)) {
      return make_error(ErrorCode::kUnsupported, "a dict made from a {}", kind_name(base));
    }
    entries.assign(base.dict->entries.begin(), base.dict->entries.end());
  }
  for (const auto& [name, value] : arguments.keywords) {
    ASSIGN_OR_RETURN(const Value key, heap.view(name, true));
    entries.push_back(DictEntry{key, value});
  }
  return heap.dict(entries);
}

Result<Value> make_namespace(Heap& heap, const Arguments& arguments) {
  Value out;
  out.kind = ValueKind::kNamespace;
  ASSIGN_OR_RETURN(out.space, heap.make(Namespace{}));
  ASSIGN_OR_RETURN(const Value given, make_dict(heap, arguments));
  for (const DictEntry& entry : given.dict->entries) {
    if (!entry.key.is(ValueKind::kString)) continue;
    RETURN_IF_ERROR(bind_variable(heap, out.space->first, entry.key.text->bytes, entry.value));
  }
  return out;
}

}  // namespace

Result<Value> call_function(Heap& heap, Function function, const Arguments& arguments,
                            const std::optional<std::tm>& now) {
  switch (function) {
    case Function::kRange:
      return make_range(heap, arguments);
    case Function::kNamespace:
      return make_namespace(heap, arguments);
    case Function::kDict:
      return make_dict(heap, arguments);
    case Function::kRaiseException: {
      ASSIGN_OR_RETURN(const Bound bound, bind("raise_exception", arguments, {"message"}, 1));
      ASSIGN_OR_RETURN(const Text* words, to_text(heap, *bound[0]));
      return make_error(ErrorCode::kInvalidArgument, "{}", words->bytes.substr(0, 1000));
    }
    case Function::kStrftimeNow: {
      ASSIGN_OR_RETURN(const Bound bound, bind("strftime_now", arguments, {"format"}, 1));
      ASSIGN_OR_RETURN(const Text* format, text_argument("strftime_now", *bound[0]));
      // No directive prints more than ten bytes for each of its own two.
      RETURN_IF_ERROR(heap.spend_scan(8 * format->bytes.size()));
      RETURN_IF_ERROR(heap.reserve(8 * format->bytes.size()));
      ASSIGN_OR_RETURN(const std::string text, format_time(*now, format->bytes));
      return heap.copy(text, true);
    }
  }
  return none_value();
}

}  // namespace troika::model::jinja
