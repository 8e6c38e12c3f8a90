#include "troika/device/opencl/testing/eager_driver.h"

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "troika/device/opencl/api.h"

namespace troika::device::opencl {
namespace {

using Bytes = std::shared_ptr<std::vector<char>>;

// Rows of a copy on the host; of a plain one there is one.
struct HostRows {
  char* data = nullptr;
  size_t width = 0;
  size_t count = 1;
  size_t stride = 0;
};

struct LateCopy {
  uint64_t number = 0;
  cl_command_queue queue = nullptr;
  Bytes from;
  HostRows to;
};

struct State {
  Api real;
  std::mutex mutex;
  uint64_t queued = 0;  // copies to the host so far
  int64_t arrived = 0;
  std::deque<LateCopy> late;
  std::map<cl_event, std::pair<cl_command_queue, uint64_t>> markers;  // and the copies before each
  std::map<cl_command_queue, std::vector<Bytes>> taken;  // what copies to the device read
};
State* state = nullptr;

Bytes take(const HostRows& rows) {
  auto bytes = std::make_shared<std::vector<char>>(rows.width * rows.count);
  for (size_t i = 0; i < rows.count; ++i) {
    std::memcpy(bytes->data() + i * rows.width, rows.data + i * rows.stride, rows.width);
  }
  return bytes;
}

// Those of a queue up to `last` arrive. With the lock held.
void arrive(cl_command_queue queue, uint64_t last) {
  for (auto copy = state->late.begin(); copy != state->late.end();) {
    if (copy->queue != queue || copy->number > last) {
      ++copy;
      continue;
    }
    for (size_t i = 0; i < copy->to.count; ++i) {
      std::memcpy(copy->to.data + i * copy->to.stride, copy->from->data() + i * copy->to.width,
                  copy->to.width);
    }
    ++state->arrived;
    copy = state->late.erase(copy);
  }
}

char* expect_later(cl_command_queue queue, const HostRows& rows) {
  const std::lock_guard lock(state->mutex);
  auto bytes = std::make_shared<std::vector<char>>(rows.width * rows.count);
  state->late.push_back({++state->queued, queue, bytes, rows});
  return bytes->data();
}

const char* taken_now(cl_command_queue queue, const HostRows& rows) {
  const std::lock_guard lock(state->mutex);
  Bytes bytes = take(rows);
  state->taken[queue].push_back(bytes);
  return bytes->data();
}

HostRows whole(const void* data, size_t size) {
  return {const_cast<char*>(static_cast<const char*>(data)), size, 1, size};
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                size_t offset, size_t size, const void* data, cl_uint n_waits,
                                const cl_event* waits, cl_event* event) {
  if (blocking != CL_TRUE) data = taken_now(queue, whole(data, size));
  return state->real.EnqueueWriteBuffer(queue, buffer, blocking, offset, size, data, n_waits, waits,
                                        event);
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               size_t offset, size_t size, void* data, cl_uint n_waits,
                               const cl_event* waits, cl_event* event) {
  if (blocking != CL_TRUE) data = expect_later(queue, whole(data, size));
  return state->real.EnqueueReadBuffer(queue, buffer, blocking, offset, size, data, n_waits, waits,
                                       event);
}

// Of copies of rows only what is used here: two dimensions, from the host's first row on.
HostRows rows_of(const void* data, const size_t* region, size_t stride) {
  return {const_cast<char*>(static_cast<const char*>(data)), region[0], region[1], stride};
}

cl_int CL_API_CALL write_rows(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                              const size_t* buffer_origin, const size_t* host_origin,
                              const size_t* region, size_t buffer_stride, size_t buffer_slice,
                              size_t host_stride, size_t host_slice, const void* data,
                              cl_uint n_waits, const cl_event* waits, cl_event* event) {
  if (blocking != CL_TRUE) {
    data = taken_now(queue, rows_of(data, region, host_stride));
    host_stride = region[0];
  }
  return state->real.EnqueueWriteBufferRect(queue, buffer, blocking, buffer_origin, host_origin,
                                            region, buffer_stride, buffer_slice, host_stride,
                                            host_slice, data, n_waits, waits, event);
}

cl_int CL_API_CALL read_rows(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                             const size_t* buffer_origin, const size_t* host_origin,
                             const size_t* region, size_t buffer_stride, size_t buffer_slice,
                             size_t host_stride, size_t host_slice, void* data, cl_uint n_waits,
                             const cl_event* waits, cl_event* event) {
  if (blocking != CL_TRUE) {
    data = expect_later(queue, rows_of(data, region, host_stride));
    host_stride = region[0];
  }
  return state->real.EnqueueReadBufferRect(queue, buffer, blocking, buffer_origin, host_origin,
                                           region, buffer_stride, buffer_slice, host_stride,
                                           host_slice, data, n_waits, waits, event);
}

cl_int CL_API_CALL marker(cl_command_queue queue, cl_uint n_waits, const cl_event* waits,
                          cl_event* event) {
  const cl_int code = state->real.EnqueueMarkerWithWaitList(queue, n_waits, waits, event);
  const std::lock_guard lock(state->mutex);
  if (code == CL_SUCCESS && event != nullptr) state->markers[*event] = {queue, state->queued};
  return code;
}

cl_int CL_API_CALL wait_for(cl_uint count, const cl_event* events) {
  const cl_int code = state->real.WaitForEvents(count, events);
  const std::lock_guard lock(state->mutex);
  for (cl_uint i = 0; i < count; ++i) {
    const auto found = state->markers.find(events[i]);
    if (found != state->markers.end()) arrive(found->second.first, found->second.second);
  }
  return code;
}

cl_int CL_API_CALL release_event(cl_event event) {
  {
    const std::lock_guard lock(state->mutex);
    state->markers.erase(event);
  }
  return state->real.ReleaseEvent(event);
}

cl_int CL_API_CALL finish(cl_command_queue queue) {
  const cl_int code = state->real.Finish(queue);
  const std::lock_guard lock(state->mutex);
  arrive(queue, state->queued);
  state->taken.erase(queue);
  return code;
}

}  // namespace

EagerDriver::EagerDriver() {
  if (!load_api()) return;
  state = new State;
  state->real = api();
  Api eager = api();
  eager.EnqueueWriteBuffer = write_buffer;
  eager.EnqueueReadBuffer = read_buffer;
  eager.EnqueueWriteBufferRect = write_rows;
  eager.EnqueueReadBufferRect = read_rows;
  eager.EnqueueMarkerWithWaitList = marker;
  eager.WaitForEvents = wait_for;
  eager.ReleaseEvent = release_event;
  eager.Finish = finish;
  replace_api(eager);
}

EagerDriver::~EagerDriver() {
  if (state == nullptr) return;
  replace_api(state->real);
  delete state;
  state = nullptr;
}

int64_t EagerDriver::late_copies() const {
  if (state == nullptr) return 0;
  const std::lock_guard lock(state->mutex);
  return state->arrived;
}

}  // namespace troika::device::opencl
