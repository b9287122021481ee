// Whether this program is watched by a sanitizer: some tests do less then, or leave out what a sanitizer ends the program
// for.
#pragma once

namespace neap::testing {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NEAP_TEST_SANITIZED
#endif
#endif
#if defined(NEAP_TEST_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace neap::testing
