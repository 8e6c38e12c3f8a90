// The blocks of the shared pool as OpenCL buffers: the same memory where host and device share it,
// else a copy of the device's own, and what is copied between the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/memory.h"
#include "troika/device/opencl/api.h"
#include "troika/device/opencl/arena.h"
#include "troika/device/opencl/landing.h"

namespace troika::device::opencl {

// Rows of bytes, further apart than they are wide.
struct Rows {
  std::byte* data = nullptr;
  int64_t stride = 0;
  int64_t width = 0;  // bytes
  int64_t count = 0;
};

// One thread at a time.
class Mirrors {
 public:
  // Memory of its own is that of `arena`.
  Mirrors(cl_context context, cl_command_queue queue, bool own_memory, Arena& arena)
      : context_(context),
        queue_(queue),
        own_memory_(own_memory),
        arena_(arena),
        landing_(context, queue) {}

  // To be called before the places of a task are looked up: forgets blocks that are gone.
  void refresh();
  // Where an address is on the device. kInternal for memory that no pool gave; kOutOfMemory.
  Result<Place> find(const std::byte* address);

  // Queue copies between the pool and the device's own memory; nothing where memory is shared. The
  // pool's rows must stay until the queue has come to the copy.
  Status upload(const Rows& rows);
  Status download(const Rows& rows);
  // The rows may be in the pool only once landing() was told to land what was queued there.
  Status download_by_landing(const Rows& rows);
  Landing& landing() { return landing_; }

  // Of the cache at `address`, where this is the only device: the last copy of its blocks that was
  // made up for, and which of its blocks the device has; the pool may be behind in those.
  struct KvState {
    uint64_t last_copy = 0;
    std::vector<bool> resident;
  };
  Result<KvState*> kv_state(const std::byte* address);

  // Changes whenever buffers may have been given back.
  uint64_t generation() const { return changes_; }
  bool own_memory() const { return own_memory_; }
  int64_t own_bytes() const;
  int64_t copies() const { return copies_; }
  int64_t copy_bytes() const { return copy_bytes_; }

 private:
  struct Mirror {
    BlockRange range;
    Piece piece;
    KvState kv;
  };

  Result<Piece> piece_for(const BlockRange& range);
  Result<Mirror*> mirror_of(const std::byte* address);
  Status copy(const Rows& rows, bool to_device);
  // Of rows that begin at `place`, `width` bytes from byte `begin` on.
  Status copy_columns(const Place& place, const Rows& rows, size_t begin, size_t width,
                      bool to_device);

  cl_context context_;
  cl_command_queue queue_;
  const bool own_memory_;
  Arena& arena_;
  Landing landing_;
  std::vector<Mirror> mirrors_;
  uint64_t changes_ = 0;
  int64_t copies_ = 0;
  int64_t copy_bytes_ = 0;
};

}  // namespace troika::device::opencl
