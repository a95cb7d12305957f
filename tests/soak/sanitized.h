/* SPDX-License-Identifier: MIT */
/* Is a sanitizer compiled in? */
#ifndef TIDEPOOL_TESTS_SOAK_SANITIZED_H
#define TIDEPOOL_TESTS_SOAK_SANITIZED_H

#if defined(__SANITIZE_THREAD__)
#define SOAK_UNDER_TSAN 1
#elif defined(__has_feature)
#define SOAK_UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define SOAK_UNDER_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SOAK_UNDER_ASAN 1
#elif defined(__has_feature)
#define SOAK_UNDER_ASAN __has_feature(address_sanitizer)
#else
#define SOAK_UNDER_ASAN 0
#endif

#endif
