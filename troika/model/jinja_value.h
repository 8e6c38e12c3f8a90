// The values of a running chat template, and the heap that holds and bounds them.
//
// Values are small handles to immutable objects. All objects of one rendering live in one Heap
// until the rendering ends, so nothing needs freeing, parts of a text are views of it, and the
// bound on memory is one counter. Text remembers for every byte whether the template wrote it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/chat_template.h"
#include "troika/model/jinja_ast.h"

namespace troika::model::jinja {

// So many bytes of one origin.
struct Run {
  size_t size = 0;
  bool from_template = false;
};

struct Text {
  std::string_view bytes;
  std::span<const Run> runs;  // in order, adjacent ones differ; sizes add up to bytes.size()
};

struct Value;
struct Scope;

// What a sequence is in the language; they differ in indexing, printing and truth.
enum class SequenceKind : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems, kGenerator };

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::span<const Value> items;
  size_t taken = 0;  // of a generator
};

struct DictEntry;
struct Dict {
  std::span<const DictEntry> entries;  // in order of insertion, keys differ
};

struct Binding;
struct Namespace {
  Binding* first = nullptr;
};

// The variable `loop`.
struct Loop {
  std::span<const Value> items;
  size_t index = 0;
  const Sequence* last_changed = nullptr;
};

struct Macro {
  const Stmt* definition = nullptr;
  Scope* scope = nullptr;  // where it was defined
};

enum class Function : uint8_t { kRange, kNamespace, kDict, kRaiseException, kStrftimeNow };

struct Method;

enum class ValueKind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,
  kMethod,
};

struct Value {
  ValueKind kind = ValueKind::kUndefined;
  union {
    const std::string* missing = nullptr;  // of kUndefined: the name that was not found, or null
    bool boolean;
    int64_t integer;
    double number;
    const Text* text;
    Sequence* sequence;
    const Dict* dict;
    Namespace* space;
    Loop* loop;
    const Macro* macro;
    Function function;
    const Method* method;
  };

  bool is(ValueKind k) const { return kind == k; }
  bool is_sequence(SequenceKind k) const { return is(ValueKind::kSequence) && sequence->kind == k; }
  bool is_number() const {
    return is(ValueKind::kBool) || is(ValueKind::kInteger) || is(ValueKind::kFloat);
  }
  bool is_integral() const { return is(ValueKind::kBool) || is(ValueKind::kInteger); }
  int64_t as_integer() const { return is(ValueKind::kBool) ? (boolean ? 1 : 0) : integer; }
  double as_number() const {
    return is(ValueKind::kFloat) ? number : static_cast<double>(as_integer());
  }
};

struct DictEntry {
  Value key;
  Value value;
};

struct Binding {
  std::string_view name;
  Value value;
  Binding* next = nullptr;
};

struct Method {
  Value self;
  std::string_view name;
};

Value none_value();
Value bool_value(bool value);
Value integer_value(int64_t value);
Value float_value(double value);
Value undefined_value(const std::string* name = nullptr);
Value function_value(Function function);

// "str", "int", ...: as error messages name the kind of a value.
std::string_view kind_name(const Value& value);

// Objects and work of one rendering. Every function that makes or touches something charges here;
// past a bound they return kInvalidData.
class Heap {
 public:
  explicit Heap(const ChatTemplateLimits& limits);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Status spend(size_t steps);
  // Work in proportion to text: copying it, or looking at every character of it.
  Status spend_copy(size_t bytes) { return spend(bytes / 64); }
  Status spend_scan(size_t bytes) { return spend(bytes / 16); }
  // A step into a value `depth` levels down; an error below the deepest that is allowed.
  Status go_deeper(size_t depth);
  // Counts memory that the caller holds elsewhere.
  Status reserve(size_t bytes);

  const ChatTemplateLimits& limits() const { return limits_; }

  // An uninitialized, aligned array in the heap.
  template <class T>
  Result<std::span<T>> allocate(size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    if (count > limits_.max_memory_bytes / sizeof(T)) return reserve_failed();
    ASSIGN_OR_RETURN(void* memory, allocate_bytes(count * sizeof(T)));
    T* first = static_cast<T*>(memory);
    std::uninitialized_value_construct_n(first, count);
    return std::span<T>(first, count);
  }

  template <class T>
  Result<T*> make(const T& value) {
    ASSIGN_OR_RETURN(std::span<T> one, allocate<T>(1));
    one[0] = value;
    return one.data();
  }

  // A text of one origin. `view` does not copy: the bytes must outlive the heap.
  Result<Value> view(std::string_view bytes, bool from_template);
  Result<Value> copy(std::string_view bytes, bool from_template);
  Result<Value> text(const Text& text);
  Result<Value> sequence(SequenceKind kind, std::span<const Value> items);  // copies the handles
  Result<Value> list(const std::vector<Value>& items) {
    return sequence(SequenceKind::kList, items);
  }
  Result<Value> dict(std::span<const DictEntry> entries);  // copies; a later equal key wins
  Result<Value> method(const Value& self, std::string_view name);
  // A name that lives as long as the heap.
  Result<const std::string*> keep(std::string_view name);

 private:
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kChunkBytes = 64 * 1024;

  tl::unexpected<Error> reserve_failed() const;
  Result<void*> allocate_bytes(size_t size);

  ChatTemplateLimits limits_;
  size_t steps_ = 0;
  size_t bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::deque<std::string> names_;
  std::byte* free_ = nullptr;
  size_t free_bytes_ = 0;
};

// Collects text with its origins.
class TextBuilder {
 public:
  void append(std::string_view bytes, bool from_template);
  void append(const Text& text);
  const std::string& bytes() const { return bytes_; }
  std::span<const Run> runs() const { return runs_; }
  size_t size() const { return bytes_.size(); }
  // Moves the text into the heap.
  Result<Value> finish(Heap& heap) const;

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

// Part of a text, without copying bytes. `begin` and `size` in bytes, within the text.
Result<Text> subtext(Heap& heap, const Text& text, size_t begin, size_t size);

// Calls fn(bytes, from_template) for each run.
template <class Fn>
void for_each_run(const Text& text, Fn fn) {
  size_t offset = 0;
  for (const Run& run : text.runs) {
    fn(text.bytes.substr(offset, run.size), run.from_template);
    offset += run.size;
  }
}

// ---- meaning of values
bool is_true(const Value& value);
// Deep equality, as `==`; kInvalidData when nested too deep.
Result<bool> equal(Heap& heap, const Value& a, const Value& b, size_t depth = 0);
// Negative, 0 or positive, as `<`; kInvalidData if the kinds have no order.
Result<int> compare(Heap& heap, const Value& a, const Value& b, size_t depth = 0);
// `needle in haystack`.
Result<bool> contains(Heap& heap, const Value& haystack, const Value& needle);
// The entry with a key, or null.
Result<const DictEntry*> find(Heap& heap, const Dict& dict, const Value& key);
// The items that a loop over the value visits.
Result<std::span<const Value>> iterate(Heap& heap, const Value& value);
// `len(value)`.
Result<size_t> length(Heap& heap, const Value& value);

// Sets a variable in a list of them.
Status bind_variable(Heap& heap, Binding*& first, std::string_view name, const Value& value);

// The error for the use of an undefined value.
tl::unexpected<Error> undefined_error(const Value& value);

}  // namespace troika::model::jinja
