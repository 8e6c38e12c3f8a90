#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "troika/model/available_memory.h"
#include "troika/model/weight_pool.h"

namespace troika::model {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

double gib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

Result<PageRegion> PageRegion::allocate(uint64_t bytes) {
  const auto available = available_memory_bytes();
  if (available && bytes > *available) {
    return make_error(ErrorCode::kOutOfMemory,
                      "the weights need {:.2f} GiB of memory, but {:.2f} GiB are available",
                      gib(bytes), gib(*available));
  }
  PageRegion region;
  if (bytes == 0) return region;
  const uint64_t mapping_bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  void* mapping = ::mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return make_error(ErrorCode::kOutOfMemory,
                      "the weights need {:.2f} GiB of memory, which the system refused: {}",
                      gib(bytes), std::generic_category().message(errno));
  }
  region.mapping_ = mapping;
  region.mapping_bytes_ = mapping_bytes;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  region.data_ = static_cast<std::byte*>(mapping) + (aligned - address);
  region.size_ = bytes;
  // Only a wish: without it everything works, slower.
  (void)::madvise(region.data_, bytes, MADV_HUGEPAGE);
  return region;
}

PageRegion::PageRegion(PageRegion&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

PageRegion& PageRegion::operator=(PageRegion&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

PageRegion::~PageRegion() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

}  // namespace troika::model
