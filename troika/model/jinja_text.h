// Operations on text that keep, for every character, where it came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// Which ends strip() works on.
struct Ends {
  bool left = true;
  bool right = true;
};

// Without `characters`: white space.
Result<Value> strip(Heap& heap, const Text& text, const Text* characters, Ends ends);

enum class Case { kUpper, kLower, kCapitalize, kTitle, kTitleFilter };
Result<Value> change_case(Heap& heap, const Text& text, Case how);

// Python's str.replace; `count` < 0 replaces all.
Result<Value> replace(Heap& heap, const Text& text, const Text& old_part, const Text& new_part,
                      int64_t count);
// Python's str.split and str.rsplit; without `separator`, at white space; `limit` < 0: no limit.
Result<Value> split(Heap& heap, const Text& text, const Text* separator, int64_t limit,
                    bool from_right);
Result<Value> split_lines(Heap& heap, const Text& text, bool keep_ends);
// Index of the first (or last) place of `part` in characters, or -1.
Result<int64_t> index_of(Heap& heap, const Text& text, const Text& part, bool last);

Result<Value> repeat(Heap& heap, const Text& text, int64_t count);
Result<Value> reverse(Heap& heap, const Text& text);

// Python's rules for a slice of `size` items: the first index, the step and how many.
struct SliceRange {
  int64_t begin = 0;
  int64_t step = 1;
  size_t count = 0;
};
Result<SliceRange> slice_range(size_t size, std::optional<int64_t> start,
                               std::optional<int64_t> stop, std::optional<int64_t> step);
Result<Value> slice(Heap& heap, const Text& text, const SliceRange& range, bool all_ascii);
// The character at an index that may count from the end; undefined (empty) when outside.
Result<std::optional<Value>> character_at(Heap& heap, const Text& text, int64_t index);

}  // namespace troika::model::jinja
