// Result<T>: a value or an Error. The one error style of the library: user input, files and drivers
// give a Result; a programmer's error is an assert; nothing below cli/ prints, exits or aborts.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace troika {

// What kind of failure it was. Each code maps to one exit code of the program.
enum class ErrorCode {
  kInvalidArgument,  // a flag, a value or a request that cannot be meant
  kNotFound,         // a file, device or name that is not there
  kInvalidData,      // a file that is damaged or contradicts itself
  kUnsupported,      // sound, but not something this build can do
  kOutOfMemory,      // needs more memory than there is
  kContextFull,      // more tokens than the context holds
  kIo,               // reading or writing failed
  kDeviceFailed,     // a device refused, broke or was lost
  kTimeout,          // took longer than allowed
  kCancelled,        // stopped on request
  kInternal,         // a bug of ours that was noticed in time
};

// "invalid data", for logs and tests.
std::string_view to_string(ErrorCode code);

// The program's exit code for this kind of failure, 1-125; listed in docs/errors.md.
int exit_code(ErrorCode code);

// `message` says what, which value, and what to do, in one line.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// An error with a formatted message, convertible to any Result.
template <class... Args>
tl::unexpected<Error> make_error(ErrorCode code, fmt::format_string<Args...> format,
                                 Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace troika

#define TROIKA_CONCAT_(a, b) a##b
#define TROIKA_CONCAT(a, b) TROIKA_CONCAT_(a, b)

// Returns the error of `expr` (a Status or Result) from the enclosing function.
#define RETURN_IF_ERROR(expr)                                                       \
  do {                                                                              \
    if (auto return_if_error = (expr); !return_if_error) {                          \
      return ::tl::unexpected<::troika::Error>(std::move(return_if_error).error()); \
    }                                                                               \
  } while (false)

// ASSIGN_OR_RETURN(auto x, f()): x gets the value, or the error is returned.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(TROIKA_CONCAT(result_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(result, lhs, expr)                             \
  auto result = (expr);                                                  \
  if (!result) {                                                         \
    return ::tl::unexpected<::troika::Error>(std::move(result).error()); \
  }                                                                      \
  lhs = std::move(*result)
