// How much of a range of anonymous memory the system really holds: pages are taken when first
// written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troika {

// The resident part of `bytes` bytes at `data`, in whole pages but never more than `bytes`; -1 if
// the system does not tell.
int64_t resident_bytes(const std::byte* data, int64_t bytes);

}  // namespace troika
