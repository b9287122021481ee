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

/// Of so many random cases those that this program runs: a sanitizer makes each some ten times slower, and sees in a tenth
/// of them what it would see in all.
template <class N>
constexpr N cases(N n) {
  return sanitized ? n / 10 : n;
}

}  // namespace neap::testing
