// The memory of this process as the system and the C library tell it: /proc/self/smaps and the
// heap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::cli {

// One range of addresses in /proc/self/smaps.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string permissions;  // "rw-p"
  std::string name;         // a path, "[heap]", or empty for anonymous memory
  int64_t resident = 0;     // bytes
};

// Ranges in rising order. kInvalidData with the line for text that the system would not write.
Result<std::vector<Mapping>> parse_smaps(std::string_view text);

// Resident bytes by what the ranges are for. What is not named here is memory that the program or a
// library took with mmap, and the heap.
struct MappedMemory {
  int64_t resident = 0;  // all of it: RSS
  int64_t files = 0;     // program and libraries, with their variables
  int64_t generated_code = 0;
  int64_t stacks = 0;
};

// Stacks are known by the guard page below them; `stack_bytes` is their usual size.
MappedMemory sum_mappings(const std::vector<Mapping>& mappings, int64_t stack_bytes);

// Reads it. kNotFound or kUnsupported where the system does not tell.
Result<MappedMemory> mapped_memory();

// Bytes that the program and its libraries hold by malloc and new; nullopt where the C library does
// not tell.
std::optional<int64_t> heap_in_use();

// Gives freed memory back to the system, so that what is resident is what is in use.
void trim_heap();

}  // namespace troika::cli
