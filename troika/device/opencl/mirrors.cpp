#include "troika/device/opencl/mirrors.h"

#include <algorithm>

namespace troika::device::opencl {

void Mirrors::refresh() {
  const uint64_t changes = block_changes();
  if (changes == changes_) return;
  changes_ = changes;
  std::erase_if(mirrors_, [](const Mirror& mirror) { return !is_live_block(mirror.range.id); });
}

Result<Mirrors::Mirror*> Mirrors::mirror_of(const std::byte* address) {
  for (Mirror& mirror : mirrors_) {
    if (address >= mirror.range.data && address < mirror.range.data + mirror.range.bytes) {
      return &mirror;
    }
  }
  const auto range = find_block(address);
  if (!range) {
    return make_error(ErrorCode::kInternal, "a tensor lies outside the shared pool");
  }
  Mirror mirror;
  mirror.range = *range;
  cl_int code = CL_SUCCESS;
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (own_memory_ ? 0 : CL_MEM_USE_HOST_PTR);
  mirror.buffer =
      BufferHandle(api().CreateBuffer(context_, flags, static_cast<size_t>(range->bytes),
                                      own_memory_ ? nullptr : range->data, &code));
  if (code != CL_SUCCESS) {
    const Error error = call_error("clCreateBuffer", code);
    return make_error(error.code, "no room for {} bytes of activations or keys and values: {}",
                      range->bytes, error.message);
  }
  return &mirrors_.emplace_back(std::move(mirror));
}

Result<Place> Mirrors::find(const std::byte* address) {
  ASSIGN_OR_RETURN(const Mirror* const mirror, mirror_of(address));
  return Place{mirror->buffer.get(), address - mirror->range.data};
}

Result<Mirrors::KvState*> Mirrors::kv_state(const std::byte* address) {
  ASSIGN_OR_RETURN(Mirror* const mirror, mirror_of(address));
  return &mirror->kv;
}

Status Mirrors::copy(const Rows& rows, bool to_device) {
  if (!own_memory_ || rows.count == 0 || rows.width == 0) return {};
  ASSIGN_OR_RETURN(const Place place, find(rows.data));
  ++copies_;
  copy_bytes_ += rows.count * rows.width;
  const auto offset = static_cast<size_t>(place.offset);
  const auto width = static_cast<size_t>(rows.width);
  if (rows.count == 1 || rows.stride == rows.width) {
    const size_t bytes = width * static_cast<size_t>(rows.count);
    return check_call(
        "a copy", to_device ? api().EnqueueWriteBuffer(queue_, place.buffer, CL_FALSE, offset,
                                                       bytes, rows.data, 0, nullptr, nullptr)
                            : api().EnqueueReadBuffer(queue_, place.buffer, CL_FALSE, offset, bytes,
                                                      rows.data, 0, nullptr, nullptr));
  }
  // Both sides have the pool's stride. Some drivers want the origin within one row.
  const auto stride = static_cast<size_t>(rows.stride);
  const size_t buffer_origin[3] = {offset % stride, offset / stride, 0};
  const size_t host_origin[3] = {0, 0, 0};
  const size_t region[3] = {width, static_cast<size_t>(rows.count), 1};
  if (buffer_origin[0] + width > stride) {  // rows that reach over the stride's border
    for (int64_t i = 0; i < rows.count; ++i) {
      RETURN_IF_ERROR(copy({rows.data + i * rows.stride, rows.stride, rows.width, 1}, to_device));
    }
    return {};
  }
  return check_call("a copy of rows",
                    to_device ? api().EnqueueWriteBufferRect(
                                    queue_, place.buffer, CL_FALSE, buffer_origin, host_origin,
                                    region, stride, 0, stride, 0, rows.data, 0, nullptr, nullptr)
                              : api().EnqueueReadBufferRect(
                                    queue_, place.buffer, CL_FALSE, buffer_origin, host_origin,
                                    region, stride, 0, stride, 0, rows.data, 0, nullptr, nullptr));
}

Status Mirrors::upload(const Rows& rows) { return copy(rows, true); }
Status Mirrors::download(const Rows& rows) { return copy(rows, false); }

int64_t Mirrors::own_bytes() const {
  int64_t bytes = 0;
  for (const Mirror& mirror : mirrors_) bytes += own_memory_ ? mirror.range.bytes : 0;
  return bytes;
}

}  // namespace troika::device::opencl
