#include "troika/model/jinja_text.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "troika/model/jinja_unicode.h"

namespace troika::model::jinja {
namespace {

constexpr size_t kNotFound = std::string_view::npos;

// In linear time whatever the texts.
size_t find_bytes(std::string_view text, std::string_view part, size_t from) {
  if (part.empty()) return from;
  if (from > text.size() || part.size() > text.size() - from) return kNotFound;
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (at == nullptr) return kNotFound;
  return static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

// Every place of `part`, left to right, not overlapping, at most `limit` of them.
Result<std::vector<size_t>> places(Heap& heap, std::string_view text, std::string_view part,
                                   size_t limit) {
  RETURN_IF_ERROR(heap.spend_scan(text.size() + part.size()));
  std::vector<size_t> out;
  for (size_t at = 0; out.size() < limit; at += part.size()) {
    at = find_bytes(text, part, at);
    if (at == kNotFound) break;
    // The search looks at the whole part again each time.
    RETURN_IF_ERROR(heap.spend(1 + part.size() / 16));
    out.push_back(at);
  }
  return out;
}

bool holds_character(std::string_view set, std::string_view character) {
  for (size_t offset = 0; offset < set.size();) {
    const size_t size = first_character(set.substr(offset)).size;
    if (set.substr(offset, size) == character) return true;
    offset += size;
  }
  return false;
}

Result<Value> part_value(Heap& heap, const Text& text, size_t begin, size_t size) {
  ASSIGN_OR_RETURN(const Text part, subtext(heap, text, begin, size));
  return heap.text(part);
}

void append_changed(TextBuilder& out, std::string_view bytes, int32_t code, bool upper,
                    bool origin) {
  if (code == kInvalidByte) {
    out.append(bytes, origin);
    return;
  }
  std::string changed;
  if (upper) {
    append_upper(changed, code);
  } else {
    append_lower(changed, code);
  }
  out.append(changed, origin);
}

// Whether the next character begins a word in Jinja's title filter.
bool splits_words(int32_t code) {
  return is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
}

}  // namespace

Result<Value> strip(Heap& heap, const Text& text, const Text* characters, Ends ends) {
  const std::string_view bytes = text.bytes;
  size_t begin = 0;
  size_t end = bytes.size();
  if (characters == nullptr) {
    if (ends.left) begin = leading_space(bytes);
    if (ends.right) end -= trailing_space(bytes.substr(begin));
    RETURN_IF_ERROR(heap.spend_scan(bytes.size() - (end - begin)));
    return part_value(heap, text, begin, end - begin);
  }
  const std::string_view set = characters->bytes;
  while (ends.left && begin < end) {
    const size_t size = first_character(bytes.substr(begin, end - begin)).size;
    RETURN_IF_ERROR(heap.spend_scan(set.size() + 16));
    if (!holds_character(set, bytes.substr(begin, size))) break;
    begin += size;
  }
  while (ends.right && begin < end) {
    const size_t size = last_character(bytes.substr(begin, end - begin)).size;
    RETURN_IF_ERROR(heap.spend_scan(set.size() + 16));
    if (!holds_character(set, bytes.substr(end - size, size))) break;
    end -= size;
  }
  return part_value(heap, text, begin, end - begin);
}

Result<Value> change_case(Heap& heap, const Text& text, Case how) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  TextBuilder out;
  bool begins_word = true;
  for_each_run(text, [&](std::string_view bytes, bool origin) {
    while (!bytes.empty()) {
      const Character character = first_character(bytes);
      const bool upper = how == Case::kUpper || (how != Case::kLower && begins_word);
      append_changed(out, bytes.substr(0, character.size), character.code, upper, origin);
      if (how == Case::kTitle) {
        begins_word = !is_cased(character.code);
      } else {
        begins_word = how == Case::kTitleFilter && splits_words(character.code);
      }
      bytes.remove_prefix(character.size);
    }
  });
  return out.finish(heap);
}

Result<Value> replace(Heap& heap, const Text& text, const Text& old_part, const Text& new_part,
                      int64_t count) {
  const size_t limit = count < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(count);
  std::vector<size_t> at;
  if (old_part.bytes.empty()) {  // before every character and at the end
    RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
    for (size_t offset = 0; at.size() < limit;) {
      RETURN_IF_ERROR(heap.spend(1));
      at.push_back(offset);
      if (offset >= text.bytes.size()) break;
      offset += first_character(text.bytes.substr(offset)).size;
    }
  } else {
    ASSIGN_OR_RETURN(at, places(heap, text.bytes, old_part.bytes, limit));
  }
  if (at.empty()) return heap.text(text);
  TextBuilder out;
  size_t done = 0;
  for (const size_t place : at) {
    ASSIGN_OR_RETURN(const Text kept, subtext(heap, text, done, place - done));
    // The builder holds the new text until it is done, so it counts before it grows.
    RETURN_IF_ERROR(heap.reserve(kept.bytes.size() + new_part.bytes.size()));
    RETURN_IF_ERROR(heap.spend(1));
    RETURN_IF_ERROR(heap.spend_copy(kept.bytes.size() + new_part.bytes.size()));
    out.append(kept);
    out.append(new_part);
    done = place + old_part.bytes.size();
  }
  ASSIGN_OR_RETURN(const Text kept, subtext(heap, text, done, text.bytes.size() - done));
  out.append(kept);
  return out.finish(heap);
}

namespace {

Result<Value> split_at_space(Heap& heap, const Text& text, size_t limit, bool from_right) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  std::vector<Value> parts;
  size_t begin = 0;
  size_t end = text.bytes.size();
  for (;;) {
    const std::string_view left = text.bytes.substr(begin, end - begin);
    if (from_right) {
      end -= trailing_space(left);
    } else {
      begin += leading_space(left);
    }
    if (begin == end) break;
    RETURN_IF_ERROR(heap.spend(1));
    std::string_view rest = text.bytes.substr(begin, end - begin);
    size_t size = 0;
    if (parts.size() >= limit) size = rest.size();
    while (parts.size() < limit && size < rest.size()) {
      const Character character = from_right ? last_character(rest.substr(0, rest.size() - size))
                                             : first_character(rest.substr(size));
      if (is_space(character.code)) break;
      size += character.size;
    }
    const size_t at = from_right ? end - size : begin;
    ASSIGN_OR_RETURN(Value part, part_value(heap, text, at, size));
    const bool is_last = parts.size() >= limit;
    parts.push_back(part);
    if (is_last) break;
    if (from_right) {
      end -= size;
    } else {
      begin += size;
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return heap.list(parts);
}

}  // namespace

Result<Value> split(Heap& heap, const Text& text, const Text* separator, int64_t limit,
                    bool from_right) {
  const size_t most = limit < 0 ? std::numeric_limits<size_t>::max() : static_cast<size_t>(limit);
  if (separator == nullptr) return split_at_space(heap, text, most, from_right);
  if (separator->bytes.empty()) {
    return make_error(ErrorCode::kInvalidData, "split: the separator is empty");
  }
  std::vector<size_t> at;
  if (from_right) {
    RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
    size_t end = text.bytes.size();
    while (at.size() < most && end >= separator->bytes.size()) {
      const size_t place = text.bytes.rfind(separator->bytes, end - separator->bytes.size());
      const size_t passed = end - (place == kNotFound ? 0 : place);
      RETURN_IF_ERROR(heap.spend(1 + passed * separator->bytes.size() / 256));
      if (place == kNotFound) break;
      at.push_back(place);
      end = place;
    }
    std::reverse(at.begin(), at.end());
  } else {
    ASSIGN_OR_RETURN(at, places(heap, text.bytes, separator->bytes, most));
  }
  std::vector<Value> parts;
  size_t done = 0;
  for (const size_t place : at) {
    ASSIGN_OR_RETURN(Value part, part_value(heap, text, done, place - done));
    parts.push_back(part);
    done = place + separator->bytes.size();
  }
  ASSIGN_OR_RETURN(Value part, part_value(heap, text, done, text.bytes.size() - done));
  parts.push_back(part);
  return heap.list(parts);
}

Result<Value> split_lines(Heap& heap, const Text& text, bool keep_ends) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  const auto ends_line = [](int32_t c) {
    return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::vector<Value> lines;
  size_t begin = 0;
  for (size_t offset = 0; offset < text.bytes.size();) {
    const Character character = first_character(text.bytes.substr(offset));
    const size_t line_end = offset;
    offset += character.size;
    const bool ends = ends_line(character.code);
    if (!ends && offset < text.bytes.size()) continue;
    if (character.code == '\r' && text.bytes.substr(offset, 1) == "\n") ++offset;
    RETURN_IF_ERROR(heap.spend(1));
    const size_t end = ends && !keep_ends ? line_end : offset;
    ASSIGN_OR_RETURN(Value line, part_value(heap, text, begin, end - begin));
    lines.push_back(line);
    begin = offset;
  }
  return heap.list(lines);
}

Result<int64_t> index_of(Heap& heap, const Text& text, const Text& part, bool last) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size() + part.bytes.size()));
  size_t at;
  if (last) {
    RETURN_IF_ERROR(
        heap.spend(text.bytes.size() * std::min<size_t>(part.bytes.size(), 1 << 20) / 256));
    at = text.bytes.rfind(part.bytes);
  } else {
    at = find_bytes(text.bytes, part.bytes, 0);
  }
  if (at == kNotFound) return -1;
  return static_cast<int64_t>(count_characters(text.bytes.substr(0, at)));
}

Result<Value> repeat(Heap& heap, const Text& text, int64_t count) {
  if (count <= 0 || text.bytes.empty()) return heap.text(Text{});
  if (static_cast<uint64_t>(count) > heap.limits().max_memory_bytes / text.bytes.size()) {
    return make_error(ErrorCode::kInvalidData, "a text repeated {} times needs more than {} bytes",
                      count, heap.limits().max_memory_bytes);
  }
  const size_t size = text.bytes.size() * static_cast<size_t>(count);
  RETURN_IF_ERROR(heap.spend_copy(size));
  // Runs are joined by the builder, so at worst they repeat as often as the text.
  RETURN_IF_ERROR(heap.reserve(size + text.runs.size() * static_cast<size_t>(count) * sizeof(Run)));
  RETURN_IF_ERROR(heap.spend(text.runs.size() * static_cast<size_t>(count) / 4));
  TextBuilder out;
  for (int64_t i = 0; i < count; ++i) out.append(text);
  return out.finish(heap);
}

Result<Value> reverse(Heap& heap, const Text& text) {
  ASSIGN_OR_RETURN(const size_t size, [&]() -> Result<size_t> {
    RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
    return count_characters(text.bytes);
  }());
  ASSIGN_OR_RETURN(const SliceRange range, slice_range(size, std::nullopt, std::nullopt, -1));
  return slice(heap, text, range, size == text.bytes.size());
}

Result<SliceRange> slice_range(size_t size, std::optional<int64_t> start,
                               std::optional<int64_t> stop, std::optional<int64_t> step) {
  SliceRange out;
  out.step = step.value_or(1);
  if (out.step == 0) return make_error(ErrorCode::kInvalidData, "the step of a slice is 0");
  const auto n = static_cast<int64_t>(size);
  const bool forward = out.step > 0;
  const int64_t lowest = forward ? 0 : -1;
  const int64_t highest = forward ? n : n - 1;
  const auto clamp = [&](int64_t index) {
    if (index < 0) index = index < -n ? -1 - n : index;
    if (index < 0) index += n;
    return std::clamp(index, lowest, highest);
  };
  out.begin = start ? clamp(*start) : (forward ? 0 : n - 1);
  const int64_t end = stop ? clamp(*stop) : (forward ? n : -1);
  const int64_t distance = forward ? end - out.begin : out.begin - end;
  if (distance <= 0) return out;
  // |step| without overflow for the lowest integer
  const uint64_t stride =
      forward ? static_cast<uint64_t>(out.step) : ~static_cast<uint64_t>(out.step) + 1;
  out.count = static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
  return out;
}

Result<Value> slice(Heap& heap, const Text& text, const SliceRange& range, bool all_ascii) {
  if (range.count == 0) return heap.text(Text{});
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  const auto first = static_cast<size_t>(range.begin);
  if (range.step == 1) {
    const size_t begin = offset_of(text.bytes, first);
    const size_t size = offset_of(text.bytes.substr(begin), range.count);
    return part_value(heap, text, begin, size);
  }
  std::vector<size_t> offsets;  // of every character, unless each is one byte
  if (!all_ascii) {
    RETURN_IF_ERROR(heap.reserve(text.bytes.size() * sizeof(size_t)));
    for (size_t offset = 0; offset < text.bytes.size();) {
      offsets.push_back(offset);
      offset += first_character(text.bytes.substr(offset)).size;
    }
    offsets.push_back(text.bytes.size());
  }
  RETURN_IF_ERROR(heap.spend(range.count));
  TextBuilder out;
  for (size_t i = 0; i < range.count; ++i) {
    const int64_t index = range.begin + static_cast<int64_t>(i) * range.step;
    const auto at = static_cast<size_t>(index);
    const size_t begin = all_ascii ? at : offsets[at];
    const size_t size = all_ascii ? 1 : offsets[at + 1] - begin;
    ASSIGN_OR_RETURN(const Text part, subtext(heap, text, begin, size));
    out.append(part);
  }
  return out.finish(heap);
}

Result<std::optional<Value>> character_at(Heap& heap, const Text& text, int64_t index) {
  RETURN_IF_ERROR(heap.spend_scan(text.bytes.size()));
  const size_t size = count_characters(text.bytes);
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || static_cast<size_t>(index) >= size) return std::optional<Value>();
  const size_t begin = offset_of(text.bytes, static_cast<size_t>(index));
  ASSIGN_OR_RETURN(Value out,
                   part_value(heap, text, begin, first_character(text.bytes.substr(begin)).size));
  return std::optional<Value>(out);
}

}  // namespace troika::model::jinja
