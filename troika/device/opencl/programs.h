// Compiled kernels: made from source when first wanted, kept in memory, and their binaries on disk.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"
#include "troika/device/opencl/platform.h"

namespace troika::device::opencl {

// Source texts, one after the other, and the definitions that they are compiled with. The texts
// must stay where they are for as long as the Programs that compiled them.
struct ProgramText {
  std::vector<std::string_view> sources;
  std::string defines;  // "-D WEIGHT=2 -D ROWS=4"
};

// One device's programs. Any thread; one that compiles lets the others wait.
class Programs {
 public:
  // `cache_dir` may be empty, missing, foreign or full: programs are then compiled.
  // `broken` is the name of a kernel that shall not compile, for tests.
  Programs(cl_context context, DeviceFacts facts, std::string cache_dir, std::string broken = {});

  // kUnsupported, with the compiler's words, if the device's compiler refuses it.
  Result<cl_kernel> kernel(const ProgramText& wanted, const char* name);

  int64_t built() const { return built_; }    // from source
  int64_t loaded() const { return loaded_; }  // from disk

 private:
  struct Program {
    ProgramHandle program;
    std::map<std::string, KernelHandle, std::less<>> kernels;
  };

  std::string stamp(const ProgramText& text) const;
  Result<ProgramHandle> make(const ProgramText& text);
  ProgramHandle load(const std::string& stamp);
  void store(const std::string& stamp, cl_program program) const;
  std::string path(const std::string& stamp) const;
  Status build(cl_program program, const std::string& options) const;

  cl_context context_;
  const DeviceFacts facts_;
  const std::string cache_dir_;
  const std::string broken_;
  std::mutex mutex_;
  std::map<std::string, Program> programs_;  // by sources and definitions
  int64_t built_ = 0;
  int64_t loaded_ = 0;
};

}  // namespace troika::device::opencl
