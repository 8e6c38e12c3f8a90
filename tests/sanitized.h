// Whether a test is compiled with a sanitizer: such code is many times slower, and what is looked
// at is the code, not the numbers.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROIKA_BUILT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TROIKA_BUILT_SANITIZED 1
#endif
#endif

namespace troika {

#ifdef TROIKA_BUILT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace troika
