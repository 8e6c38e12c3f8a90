// The texts of kernels/*.cl, put into the program by the build.
#pragma once

#include <string_view>

namespace troika::device::opencl {

extern const std::string_view kWeightsSource;
extern const std::string_view kPackedSource;
extern const std::string_view kProductHostSource;
extern const std::string_view kProductFewSource;
extern const std::string_view kProductManySource;
extern const std::string_view kUnitsSource;
extern const std::string_view kCacheSource;
extern const std::string_view kProductOneSource;
extern const std::string_view kLimbsSource;
extern const std::string_view kProductRowsSource;
extern const std::string_view kRowsSource;
extern const std::string_view kEmbedSource;
extern const std::string_view kAttentionSource;
extern const std::string_view kAttentionFewSource;

}  // namespace troika::device::opencl
