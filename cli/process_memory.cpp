#include "cli/process_memory.h"

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "cli/text.h"
#include "troika/base/resident.h"

namespace troika::cli {
namespace {

constexpr const char* kSmapsPath = "/proc/self/smaps";
constexpr int64_t kUsualStackBytes = int64_t{8} << 20;

// Takes a number off the front of `text`.
template <class T>
bool take_number(std::string_view& text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// "7f00-7f10 r-xp 00000000 08:01 1234    /usr/lib/libc.so"
bool parse_range(std::string_view line, Mapping& mapping) {
  if (!take_number(line, mapping.begin, 16) || !take(line, '-') ||
      !take_number(line, mapping.end, 16) || !take(line, ' ') || mapping.end <= mapping.begin) {
    return false;
  }
  mapping.permissions = take_word(line);
  if (mapping.permissions.size() != 4) return false;
  constexpr int kFieldsBeforeName = 3;  // offset, device, inode
  for (int i = 0; i < kFieldsBeforeName; ++i) {
    if (take_word(line).empty()) return false;
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  mapping.name = line;
  return true;
}

// "Rss:    12 kB"
bool parse_rss(std::string_view value, int64_t& bytes) {
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  int64_t kib = 0;
  if (!take_number(value, kib, 10) || value != " kB") return false;
  if (kib < 0 || kib > std::numeric_limits<int64_t>::max() / 1024) return false;
  bytes = kib * 1024;
  return true;
}

bool is_anonymous(const Mapping& mapping) {
  return mapping.name.empty() || mapping.name.starts_with("[anon");
}

bool is_guard(const Mapping& mapping) {
  return is_anonymous(mapping) && mapping.permissions == "---p" &&
         mapping.end - mapping.begin == static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

int64_t stack_bytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes) != 0) return kUsualStackBytes;
  size_t bytes = 0;
  const int failed = pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return failed == 0 ? static_cast<int64_t>(bytes) : kUsualStackBytes;
}

// Variables that begin as zero: the part of a segment that its file does not hold. The system calls
// these pages anonymous, like those of the heap.
int add_zeroed_variables(dl_phdr_info* info, size_t /*size*/, void* sum) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || segment.p_memsz <= segment.p_filesz) continue;
    const uint64_t base = info->dlpi_addr + segment.p_vaddr;
    const uint64_t begin = (base + segment.p_filesz + page - 1) / page * page;
    const uint64_t end = (base + segment.p_memsz + page - 1) / page * page;
    if (end <= begin) continue;
    const int64_t resident = resident_bytes(reinterpret_cast<const std::byte*>(begin),
                                            static_cast<int64_t>(end - begin));
    *static_cast<int64_t*>(sum) += std::max<int64_t>(resident, 0);
  }
  return 0;
}

}  // namespace

Result<std::vector<Mapping>> parse_smaps(std::string_view text) {
  std::vector<Mapping> mappings;
  bool has_rss = true;
  for (int64_t number = 1; !text.empty(); ++number) {
    const auto damaged = [number](std::string_view what) {
      return make_error(ErrorCode::kInvalidData, "line {} of the memory map: {}", number, what);
    };
    const size_t length = text.find('\n');
    if (length == std::string_view::npos) return damaged("cut off");
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(length + 1);
    // "Key:   value" below its range; a range's first word has no colon.
    const size_t colon = line.find(':');
    const bool is_value = colon != std::string_view::npos && colon < line.find(' ');
    if (!is_value) {
      if (!has_rss) return damaged("the range before it does not tell what is resident");
      Mapping mapping;
      if (!parse_range(line, mapping)) return damaged("not a range of addresses");
      if (!mappings.empty() && mapping.begin < mappings.back().end) {
        return damaged("the range lies in the one before it");
      }
      mappings.push_back(std::move(mapping));
      has_rss = false;
    } else if (line.substr(0, colon) == "Rss") {
      if (has_rss) return damaged("resident bytes of no range");
      Mapping& mapping = mappings.back();
      if (!parse_rss(line.substr(colon + 1), mapping.resident) ||
          static_cast<uint64_t>(mapping.resident) > mapping.end - mapping.begin) {
        return damaged("resident bytes that cannot be");
      }
      has_rss = true;
    }
  }
  if (mappings.empty() || !has_rss) {
    return make_error(ErrorCode::kInvalidData, "the memory map ends too early");
  }
  return mappings;
}

MappedMemory sum_mappings(const std::vector<Mapping>& mappings, int64_t stack_bytes) {
  MappedMemory sum;
  const Mapping* below = nullptr;
  for (const Mapping& mapping : mappings) {
    sum.resident += mapping.resident;
    if (mapping.name == "[stack]") {
      sum.stacks += mapping.resident;
    } else if (is_anonymous(mapping)) {
      const bool guarded = below != nullptr && is_guard(*below) && below->end == mapping.begin;
      if (mapping.permissions.find('x') != std::string::npos) {
        sum.generated_code += mapping.resident;
      } else if (guarded && mapping.permissions == "rw-p") {
        sum.stacks += std::min(mapping.resident, stack_bytes);
      }
    } else if (mapping.name != "[heap]") {
      sum.files += mapping.resident;
    }
    below = &mapping;
  }
  return sum;
}

Result<MappedMemory> mapped_memory() {
  ASSIGN_OR_RETURN(const std::string text, read_text(kSmapsPath));
  ASSIGN_OR_RETURN(const std::vector<Mapping> mappings, parse_smaps(text));
  MappedMemory sum = sum_mappings(mappings, stack_bytes());
  int64_t zeroed = 0;
  dl_iterate_phdr(add_zeroed_variables, &zeroed);
  sum.files += zeroed;
  return sum;
}

std::optional<int64_t> heap_in_use() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
#else
  return std::nullopt;
#endif
}

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace troika::cli
