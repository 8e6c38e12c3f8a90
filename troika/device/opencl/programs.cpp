#include "troika/device/opencl/programs.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "troika/base/write_file.h"

namespace troika::device::opencl {
namespace {

// Far above any real binary.
constexpr uintmax_t kMostBinaryBytes = uintmax_t{256} << 20;
constexpr size_t kMostLogBytes = 2000;
constexpr std::string_view kMagic = "troika opencl 1\n";

uint64_t hash_of(std::string_view text) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string source_of(const ProgramText& text) {
  std::string source;
  for (const std::string_view part : text.sources) source += part;
  return source;
}

// Cheap, since it is made for every launch: a source is known by where it is.
std::string key_of(const ProgramText& text) {
  std::string key = text.defines;
  for (const std::string_view part : text.sources) {
    const char* const address = part.data();
    key.append(reinterpret_cast<const char*>(&address), sizeof address);
  }
  return key;
}

std::string read_file(const std::string& path) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed || size > kMostBinaryBytes) return {};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

std::string header_of(const std::string& stamp, std::string_view binary) {
  return fmt::format("{}{:016x} {} {}\n{}\n", kMagic, hash_of(binary), binary.size(), stamp.size(),
                     stamp);
}

}  // namespace

Programs::Programs(cl_context context, DeviceFacts facts, std::string cache_dir, std::string broken)
    : context_(context),
      facts_(std::move(facts)),
      cache_dir_(std::move(cache_dir)),
      broken_(std::move(broken)) {}

// Everything that the binary depends on.
std::string Programs::stamp(const ProgramText& text) const {
  return fmt::format("{} | {} | {} | {} | {:016x} | {}", facts_.platform_name, facts_.name,
                     facts_.driver, facts_.version, hash_of(source_of(text)), text.defines);
}

std::string Programs::path(const std::string& stamp) const {
  return fmt::format("{}/opencl-{:016x}.bin", cache_dir_, hash_of(stamp));
}

Status Programs::build(cl_program program, const std::string& options) const {
  const cl_int code =
      api().BuildProgram(program, 1, &facts_.device, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return {};
  size_t size = 0;
  api().GetProgramBuildInfo(program, facts_.device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0) {
    api().GetProgramBuildInfo(program, facts_.device, CL_PROGRAM_BUILD_LOG, size, log.data(),
                              nullptr);
  }
  log.resize(std::min({log.find('\0'), log.size(), kMostLogBytes}));
  return make_error(ErrorCode::kUnsupported,
                    "the compiler of {} refuses a kernel ({}) with \"{}\": {}", facts_.name,
                    error_name(code), options, log);
}

ProgramHandle Programs::load(const std::string& stamp) {
  if (cache_dir_.empty()) return {};
  const std::string file = read_file(path(stamp));
  const size_t stamp_at = file.find('\n', kMagic.size());
  if (stamp_at == std::string::npos) return {};
  const size_t binary_at = stamp_at + 1 + stamp.size() + 1;
  if (binary_at >= file.size()) return {};
  const std::string_view binary = std::string_view(file).substr(binary_at);
  if (std::string_view(file).substr(0, binary_at) != header_of(stamp, binary)) return {};
  const size_t size = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  ProgramHandle program(
      api().CreateProgramWithBinary(context_, 1, &facts_.device, &size, &data, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS || !build(program.get(), "")) return {};
  return program;
}

// A cache that cannot be written costs only time.
void Programs::store(const std::string& stamp, cl_program program) const {
  if (cache_dir_.empty()) return;
  size_t size = 0;
  if (api().GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
          CL_SUCCESS ||
      size == 0 || size > kMostBinaryBytes) {
    return;
  }
  std::string binary(size, '\0');
  auto* data = reinterpret_cast<unsigned char*>(binary.data());
  if (api().GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, static_cast<void*>(&data),
                           nullptr) != CL_SUCCESS) {
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(cache_dir_, failed);
  if (failed) return;
  static_cast<void>(write_file("compiled kernels", path(stamp), header_of(stamp, binary) + binary));
}

Result<ProgramHandle> Programs::make(const ProgramText& text) {
  const std::string key = stamp(text);
  if (ProgramHandle program = load(key)) {
    ++loaded_;
    return program;
  }
  const std::string source = source_of(text);
  const char* data = source.data();
  const size_t size = source.size();
  cl_int code = CL_SUCCESS;
  ProgramHandle program(api().CreateProgramWithSource(context_, 1, &data, &size, &code));
  RETURN_IF_ERROR(check_call("clCreateProgramWithSource", code));
  RETURN_IF_ERROR(build(program.get(), text.defines));
  ++built_;
  store(key, program.get());
  return program;
}

Result<cl_kernel> Programs::kernel(const ProgramText& wanted, const char* name) {
  const std::lock_guard lock(mutex_);
  ProgramText text = wanted;
  if (broken_ == name) text.sources.push_back("#error broken for a test\n");
  const std::string key = key_of(text);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    ASSIGN_OR_RETURN(ProgramHandle made, make(text));
    found = programs_.emplace(key, Program{std::move(made), {}}).first;
  }
  Program& program = found->second;
  const auto known = program.kernels.find(name);
  if (known != program.kernels.end()) return known->second.get();
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(api().CreateKernel(program.program.get(), name, &code));
  RETURN_IF_ERROR(check_call("clCreateKernel", code));
  return program.kernels.emplace(name, std::move(kernel)).first->second.get();
}

}  // namespace troika::device::opencl
