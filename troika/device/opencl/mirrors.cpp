#include "troika/device/opencl/mirrors.h"

#include <algorithm>

namespace troika::device::opencl {

void Mirrors::refresh() {
  const uint64_t changes = block_changes();
  if (changes == changes_) return;
  changes_ = changes;
  std::erase_if(mirrors_, [](const Mirror& mirror) { return !is_live_block(mirror.range.id); });
}

Result<Piece> Mirrors::piece_for(const BlockRange& range) {
  if (own_memory_) return arena_.take(range.bytes);
  cl_int code = CL_SUCCESS;
  BufferHandle buffer(api().CreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                         static_cast<size_t>(range.bytes), range.data, &code));
  RETURN_IF_ERROR(check_call("clCreateBuffer", code));
  return Piece(std::move(buffer));
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
  auto piece = piece_for(*range);
  if (!piece) {
    return make_error(piece.error().code,
                      "no room for {} bytes of activations or keys and values: {}", range->bytes,
                      piece.error().message);
  }
  return &mirrors_.emplace_back(Mirror{*range, std::move(*piece), {}});
}

Result<Place> Mirrors::find(const std::byte* address) {
  ASSIGN_OR_RETURN(const Mirror* const mirror, mirror_of(address));
  Place place = mirror->piece.place();
  place.offset += address - mirror->range.data;
  return place;
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
  // Some drivers want a rectangle within the rows: what reaches over the stride's border is
  // another.
  const size_t first =
      std::min(width, static_cast<size_t>(rows.stride) - offset % static_cast<size_t>(rows.stride));
  RETURN_IF_ERROR(copy_columns(place, rows, 0, first, to_device));
  return first == width ? Status() : copy_columns(place, rows, first, width - first, to_device);
}

// Both sides have the pool's stride.
Status Mirrors::copy_columns(const Place& place, const Rows& rows, size_t begin, size_t width,
                             bool to_device) {
  const auto stride = static_cast<size_t>(rows.stride);
  const size_t offset = static_cast<size_t>(place.offset) + begin;
  const size_t buffer_origin[3] = {offset % stride, offset / stride, 0};
  const size_t host_origin[3] = {0, 0, 0};
  std::byte* const data = rows.data + begin;
  const size_t region[3] = {width, static_cast<size_t>(rows.count), 1};
  return check_call(
      "a copy of rows",
      to_device
          ? api().EnqueueWriteBufferRect(queue_, place.buffer, CL_FALSE, buffer_origin, host_origin,
                                         region, stride, 0, stride, 0, data, 0, nullptr, nullptr)
          : api().EnqueueReadBufferRect(queue_, place.buffer, CL_FALSE, buffer_origin, host_origin,
                                        region, stride, 0, stride, 0, data, 0, nullptr, nullptr));
}

Status Mirrors::upload(const Rows& rows) { return copy(rows, true); }
Status Mirrors::download(const Rows& rows) { return copy(rows, false); }

Status Mirrors::download_by_landing(const Rows& rows) {
  const bool whole = rows.count == 1 || rows.stride == rows.width;
  if (!own_memory_ || rows.count == 0 || rows.width == 0 || !whole) return download(rows);
  ASSIGN_OR_RETURN(const Place place, find(rows.data));
  const int64_t bytes = rows.count * rows.width;
  ASSIGN_OR_RETURN(const bool queued, landing_.queue(place, rows.data, static_cast<size_t>(bytes)));
  if (!queued) return download(rows);
  ++copies_;
  copy_bytes_ += bytes;
  return {};
}

int64_t Mirrors::own_bytes() const {
  int64_t bytes = 0;
  for (const Mirror& mirror : mirrors_) bytes += own_memory_ ? mirror.range.bytes : 0;
  return bytes;
}

}  // namespace troika::device::opencl
