#include "troika/base/result.h"

namespace troika {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kInvalidData:
      return "invalid data";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kContextFull:
      return "context full";
    case ErrorCode::kIo:
      return "input/output";
    case ErrorCode::kDeviceFailed:
      return "device failed";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return 1;
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kInvalidData:
      return 4;
    case ErrorCode::kUnsupported:
      return 5;
    case ErrorCode::kOutOfMemory:
      return 6;
    case ErrorCode::kContextFull:
      return 7;
    case ErrorCode::kIo:
      return 8;
    case ErrorCode::kDeviceFailed:
      return 9;
    case ErrorCode::kTimeout:
      return 10;
    case ErrorCode::kCancelled:
      return 11;
  }
  return 1;
}

}  // namespace troika
